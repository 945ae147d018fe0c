"""Compares what Redis holds of each match, in lists, entries, records and result logs, and mends what does not fit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from seatwise.v1 import play_service_pb2
from seatwise.v1.admin_service_pb2 import MatchFault
from seatwise_referee.match_state import MatchState
from seatwise_referee.setup import Setup
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.ladder.ladder_settings import LADDER_PREFIX
from seatwise_server.lobby.queue import CREATED
from seatwise_server.lobby.together import gather_limited
from seatwise_server.play.delivery import logged_result_of
from seatwise_server.services.lost_match import LostMatchRestorer
from seatwise_server.services.paging import bad_page_token
from seatwise_server.store import Store, now_ms
from seatwise_server.store.match_traces import ListCursor, MatchTraceReader, MatchTraces

LEAGUE_PREFIX = "leagues/"
PAGE_ENTRIES = 200
SETTLE_S = 1.0
"""After so long what looked wrong is looked at once more: it may have been between two steps."""
LIST, KEPT, LOG = "list", "kept", "log"
"""What is gone through, in this order: the list of matches, the kept records, and the result logs."""

Mend = Callable[[], Awaitable[bool]]
"""Whether it is mended now."""


@dataclass(frozen=True, slots=True)
class FoundFault:
    """Something that does not fit."""

    match: str
    kind: MatchFault.Kind
    text: str
    mend: Mend | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """What a page of the comparison came to."""

    faults: tuple[MatchFault, ...]
    checked: int
    next_page_token: str


class MatchAudit:
    """The comparison, page by page. It may run while matches are played."""

    def __init__(self, store: Store, keep_s: int) -> None:
        self._store = store
        self._traces = MatchTraceReader(store.client, store.matches)
        self._restorer = LostMatchRestorer(store, self._traces, keep_s)

    async def check_page(self, page_token: str, *, mends: bool) -> AuditPage:
        """Compares the next entries, and mends what can be mended if `mends`. `Refusal` for a bad token."""
        stage, _, rest = page_token.partition(" ") if page_token else (LIST, "", "")
        if stage == LIST:
            matches, checked, following = await self._next_of_list(_cursor(rest))
        elif stage == KEPT:
            matches, checked, following = await self._next_of_kept(_cursor(rest))
        elif stage == LOG:
            matches, checked, following = await self._next_of_log(*_log_position(rest))
        else:
            raise bad_page_token()
        faults = await self._settled(matches)
        return AuditPage(tuple([await _told(each, mends) for each in faults]), checked, following)

    # What is gone through

    async def _next_of_list(self, after: ListCursor | None) -> tuple[list[str], int, str]:
        found = await self._traces.page_of_list(after or ListCursor(0, ""), PAGE_ENTRIES)
        following = f"{LIST} {found[-1].score} {found[-1].match}" if found else KEPT
        return [each.match for each in found], len(found), following

    async def _next_of_kept(self, after: ListCursor | None) -> tuple[list[str], int, str]:
        """Of the matches whose record is kept those that are not listed; the others have been compared."""
        start = after or ListCursor(await now_ms(self._store.client), "")
        found = await self._traces.page_of_kept(start, PAGE_ENTRIES)
        following = f"{KEPT} {found[-1].score} {found[-1].match}" if found else LOG
        unlisted = await self._traces.unlisted_among([each.match for each in found])
        return unlisted, len(found), following

    async def _next_of_log(self, competition: str, after: int) -> tuple[list[str], int, str]:
        """Of the matches with results in the log those that no list has; the others have been compared."""
        results = (
            await self._store.results.read_results(competition, after, PAGE_ENTRIES) if competition else []
        )
        if results:
            following = f"{LOG} {results[-1].seq} {competition}"
        else:
            name = await self._competition_after(competition)
            following = f"{LOG} 0 {name}" if name else ""
        return await self._traces.vanished_among([each.match for each in results]), len(results), following

    async def _competition_after(self, name: str) -> str:
        """Ladders come before leagues; empty behind the last."""
        is_league = name.startswith(LEAGUE_PREFIX)
        ladders = [] if is_league else await self._store.ladders.list_names(name, 1)
        found = ladders or await self._store.leagues.list_names(name if is_league else "", 1)
        return found[0] if found else ""

    async def _settled(self, matches: Sequence[str]) -> list[FoundFault]:
        """The faults that are still there on a second look."""
        first = await self._examined(matches)
        if not first:
            return []
        await asyncio.sleep(SETTLE_S)
        seen = {(each.match, each.kind) for each in first}
        again = await self._examined(dict.fromkeys(each.match for each in first))
        return [each for each in again if (each.match, each.kind) in seen]

    async def _examined(self, matches: Iterable[str]) -> list[FoundFault]:
        awaited = dict[str, str]()
        found = await gather_limited(self._examine(match, awaited) for match in matches)
        return [fault for faults in found for fault in faults]

    # One match

    async def _examine(self, match: str, awaited: dict[str, str]) -> list[FoundFault]:
        """Everything that does not fit about one match, as of now. `awaited` is for `_examine_set`."""
        it = await self._traces.read(match)
        if not it.is_known:
            return await self._examine_absent(it)
        assert it.meta
        is_listed = it.listed_us == it.meta.create_us
        faults = [] if is_listed else [_unlisted(it, self._traces)]
        setup = Setup.from_json(json.loads(it.meta.fields["setup"]))
        if it.meta.state in (MatchState.FINISHED, MatchState.VOIDED):
            return [
                *faults,
                *await self._examine_over(it, setup),
                *await self._examine_set(it, setup, awaited),
            ]
        return await self._examine_open(it, faults)

    async def _examine_absent(self, it: MatchTraces) -> list[FoundFault]:
        if it.was_owned:
            place = await self._place_in_log(it.match)
            where = f"; its result is number {place[1]} of {place[0]}" if place else ""
            kept = "its record is still kept" if it.has_record else "its record is gone too"
            text = f"it was played, but there is no entry of it any more, and {kept}{where}"
            competition = place[0] if place else ""
            mend = (lambda: self._restorer.restore(it, competition)) if it.has_record else None
            return [FoundFault(it.match, MatchFault.KIND_LOST, text, mend)]
        if it.listed_us is None or it.kept_until_ms is not None:
            return []  # it is forgotten, or is about to leave the list with those that are
        text = "it is listed, but there is no such match"
        return [FoundFault(it.match, MatchFault.KIND_STRAY_ENTRY, text, self._unlister(it.match))]

    def _unlister(self, match: str) -> Mend:
        async def unlist() -> bool:
            await self._traces.unlist(match)
            return True

        return unlist

    async def _examine_over(self, it: MatchTraces, setup: Setup) -> list[FoundFault]:
        assert it.meta
        if "result" not in it.meta.fields:
            return [_incomplete(it.match, "it is over, but it has no result")]
        end = play_service_pb2.MatchEnded.FromString(it.meta.fields["result"])
        faults = []
        if it.meta.state == MatchState.FINISHED and not it.has_record:
            faults.append(_incomplete(it.match, "it is finished, but its record is gone"))
        if setup.competition and not it.has_job:  # else its delivery is not over
            faults += await self._examine_result(it, setup, end)
        return faults

    async def _examine_result(
        self, it: MatchTraces, setup: Setup, end: play_service_pb2.MatchEnded
    ) -> list[FoundFault]:
        """Whether the log of its ladder or league says the same."""
        name = setup.competition
        found = await self._store.results.place_in([name], it.match)
        if end.void_reason:
            text = f"it is void, but its result is number {found[1]} of {name}" if found else ""
            return [FoundFault(it.match, MatchFault.KIND_CONTRADICTED, text)] if found else []
        result = logged_result_of(setup, end)
        if found is None:
            text = f"it is finished, but its result is not in the log of {name}"
            return [FoundFault(it.match, MatchFault.KIND_UNLOGGED, text, self._appender(name, result))]
        logged = await self._store.results.read_results(name, found[1] - 1, 1)
        if list(map(_compared, logged)) != [_compared(result)]:
            text = f"its result and number {found[1]} of {name} are not the same"
            return [FoundFault(it.match, MatchFault.KIND_CONTRADICTED, text)]
        return []

    def _appender(self, competition: str, result: LoggedResult) -> Mend:
        async def append() -> bool:
            await self._store.results.append_result(competition, result)
            return True

        return append

    async def _examine_open(self, it: MatchTraces, faults: list[FoundFault]) -> list[FoundFault]:
        """Somebody has to be about to do something with a match that is not over. Who seats it lists it too."""
        assert it.meta
        queue = it.meta.fields.get("queue", b"").decode()
        if it.has_job:
            return faults
        if it.fence is None and await self._store.queues.is_under_way(queue, it.match):
            return []
        text = "it is not over, but nobody seats it or looks after it"
        return [*faults, FoundFault(it.match, MatchFault.KIND_STUCK, text, lambda: self._unstick(it, queue))]

    async def _unstick(self, it: MatchTraces, queue: str) -> bool:
        """A match that a referee has had, or that is to end, gets one; one by name waits again; another came to nothing."""
        assert it.meta
        if it.fence or "abort" in it.meta.fields:
            await self._store.jobs.push_job(it.match)
        elif queue == CREATED:
            await self._store.queues.enter_queue(CREATED, it.match)
        else:
            return await self._store.matches.drop_unowned(it.match)
        return True

    async def _examine_set(self, it: MatchTraces, setup: Setup, awaited: dict[str, str]) -> list[FoundFault]:
        """Whether the record can ever be given. `awaited` remembers by set the match that is missing, empty for none."""
        if setup.deal_set is None:
            return []
        name = setup.deal_set.name
        if name not in awaited:
            awaited[name] = await self._missing_of(name)
        if not awaited[name]:
            return []
        text = f"its record stays hidden: {name} waits for {awaited[name]}, which does not exist"
        return [FoundFault(it.match, MatchFault.KIND_SET_STUCK, text)]

    async def _missing_of(self, deal_set: str) -> str:
        found = await self._store.sets.get_set(deal_set)
        if found is None or found.is_over:
            return ""
        return next(iter(await self._traces.absent_among(found.awaited)), "")

    async def _place_in_log(self, match: str) -> tuple[str, int] | None:
        """The ladder or league that has the result of the match, and its number there."""
        names, name = list[str](), ""
        while name := await self._competition_after(name):
            names.append(name)
        return await self._store.results.place_in(names, match)


def _unlisted(it: MatchTraces, traces: MatchTraceReader) -> FoundFault:
    assert it.meta
    create_us = it.meta.create_us

    async def relist() -> bool:
        await traces.relist(it.match, create_us)
        return True

    where = "is not listed" if it.listed_us is None else "is listed at a wrong place"
    return FoundFault(it.match, MatchFault.KIND_UNLISTED, f"it {where}", relist)


def _incomplete(match: str, text: str) -> FoundFault:
    return FoundFault(match, MatchFault.KIND_INCOMPLETE, text)


def _compared(result: LoggedResult) -> tuple[object, ...]:
    """What a log and a match both say; logs of before have no chain."""
    return result.match, result.bots, result.points, result.ranks, result.endings, result.deal


async def _told(fault: FoundFault, mends: bool) -> MatchFault:
    is_mended = mends and fault.mend is not None and await fault.mend()
    return MatchFault(match=fault.match, kind=fault.kind, text=fault.text, mended=is_mended)


def _cursor(text: str) -> ListCursor | None:
    if not text:
        return None
    score, _, match = text.partition(" ")
    return ListCursor(_number(score), match)


def _log_position(text: str) -> tuple[str, int]:
    """A competition, and the number of its last result that was compared."""
    if not text:
        return "", 0
    number, _, competition = text.partition(" ")
    if not competition.startswith((LADDER_PREFIX, LEAGUE_PREFIX)):
        raise bad_page_token()
    return competition, _number(number)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        raise bad_page_token()
    return int(text)
