"""Compares all that Redis holds of each match (lists, entries, records and result logs), and repairs what does not fit."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from seatwise.v1 import play_service_pb2
from seatwise.v1.admin_service_pb2 import CheckMatchesResponse, MatchFault
from seatwise_referee.ending import MatchState
from seatwise_referee.journal import Finished, canonical_json, decode_entry
from seatwise_referee.setup import JOURNAL_FORMAT, Setup
from seatwise_referee.verify import verify_line
from seatwise_referee.verify.header import setup_of
from seatwise_server.background_tasks import gather_limited
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.game_choice import kind_of_game
from seatwise_server.ladder.ladder_settings import LADDER_PREFIX
from seatwise_server.lobby.seating import CREATED
from seatwise_server.play.delivery import encode_match_ended, logged_result_of
from seatwise_server.services.request_fields import bad_page_token, parse_position
from seatwise_server.store import Store, now_ms
from seatwise_server.store.match_traces import ListCursor, MatchTraceReader, MatchTraces
from seatwise_server.store.matches import OVER, sets_of_state
from seatwise_server.store.redis.client import Argument

LEAGUE_PREFIX = "leagues/"
PAGE_ENTRIES = 200
SETTLE_S = 1.0
"""Seconds after which a fault is checked again: the first check may have come between two steps of a write."""
LIST, SETS, KEPT, LOG = "list", "sets", "kept", "log"
"""The stages of an audit, in this order: the list of matches, the notes of their sets, the kept records, and the result logs."""

Mend = Callable[[], Awaitable[object]]
"""Repairs a fault. Returns False if that was not possible."""


@dataclass(frozen=True, slots=True)
class FoundFault:
    """One inconsistency of a match."""

    match: str
    kind: MatchFault.Kind
    text: str
    mend: Mend | None = None


class MatchAudit:
    """The audit, page by page. It may run while matches are played."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._traces = MatchTraceReader(store.client, store.matches)

    async def check_page(self, page_token: str, *, mends: bool) -> CheckMatchesResponse:
        """Compare the next entries, and repairs what it can if `mends`. Raises `Refusal` for a bad page token."""
        stage, _, rest = (page_token or LIST).partition(" ")
        stages = {
            LIST: self._next_of_list,
            SETS: self._next_of_sets,
            KEPT: self._next_of_kept,
            LOG: self._next_of_log,
        }
        if stage not in stages:
            raise bad_page_token()
        matches, checked, following = await stages[stage](rest)
        faults = [await _report_fault(each, mends) for each in await self._find_settled_faults(matches)]
        return CheckMatchesResponse(faults=faults, checked=checked, next_page_token=following)

    # The entries of each stage, after those that the rest of a page token names

    async def _next_of_list(self, rest: str) -> tuple[list[str], int, str]:
        found = await self._traces.page_of_list(_parse_cursor(rest) or ListCursor(0, ""), PAGE_ENTRIES)
        following = f"{LIST} {found[-1].score} {found[-1].match}" if found else SETS
        return [each.match for each in found], len(found), following

    async def _next_of_sets(self, rest: str) -> tuple[list[str], int, str]:
        """Return the matches in sets to which no list and no log leads; the others are compared there."""
        cursor, found = await self._traces.scan_facets(parse_position(rest), PAGE_ENTRIES)
        following = f"{SETS} {cursor}" if cursor else KEPT
        return await self._traces.strays_among(found), len(found), following

    async def _next_of_kept(self, rest: str) -> tuple[list[str], int, str]:
        """Return the unlisted matches among those whose record is kept; the listed ones were compared before."""
        start = _parse_cursor(rest) or ListCursor(await now_ms(self._store.client), "")
        found = await self._traces.page_of_kept(start, PAGE_ENTRIES)
        following = f"{KEPT} {found[-1].score} {found[-1].match}" if found else LOG
        unlisted = await self._traces.unlisted_among([each.match for each in found])
        return unlisted, len(found), following

    async def _next_of_log(self, rest: str) -> tuple[list[str], int, str]:
        """Return the matches with results in the log that are in no list; the others were compared before."""
        competition, after = _parse_log_position(rest)
        results: list[LoggedResult] = []
        if competition:
            results = await self._store.results.read_results(competition, after, PAGE_ENTRIES)
        if results:
            following = f"{LOG} {results[-1].seq} {competition}"
        else:
            name = await self._competition_after(competition)
            following = f"{LOG} 0 {name}" if name else ""
        return await self._traces.vanished_among([each.match for each in results]), len(results), following

    async def _competition_after(self, name: str) -> str:
        """Return the competition after this one; empty after the last. Ladders come before leagues."""
        is_league = name.startswith(LEAGUE_PREFIX)
        ladders = [] if is_league else await self._store.ladders.list_names(name, 1)
        found = ladders or await self._store.leagues.list_names(name if is_league else "", 1)
        return found[0] if found else ""

    async def _find_settled_faults(self, matches: Sequence[str]) -> list[FoundFault]:
        """Return the faults that are still there at a second check."""
        first = await self._find_faults(matches)
        if not first:
            return []
        await asyncio.sleep(SETTLE_S)
        seen = {(each.match, each.kind) for each in first}
        again = await self._find_faults(dict.fromkeys(each.match for each in first))
        return [each for each in again if (each.match, each.kind) in seen]

    async def _find_faults(self, matches: Iterable[str]) -> list[FoundFault]:
        awaited = dict[str, str]()
        found = await gather_limited(self._examine_match(match, awaited) for match in matches)
        return [fault for faults in found for fault in faults]

    # One match

    async def _examine_match(self, match: str, awaited: dict[str, str]) -> list[FoundFault]:
        """Return every fault of one match as of now. `awaited` is passed on to `_examine_set`."""
        it = await self._traces.read(match)
        if not it.is_known:
            return await self._examine_absent(it)
        assert it.meta
        faults = [] if _is_listed(it) else [_unlisted_fault(it, self._traces)]
        setup = Setup.from_json(json.loads(it.meta.fields["setup"]))
        if it.meta.state in (MatchState.FINISHED, MatchState.VOIDED):
            faults += await self._examine_over(it, setup)
            return faults + await self._examine_set(it, setup, awaited)
        return await self._examine_open(it, faults)

    async def _examine_absent(self, it: MatchTraces) -> list[FoundFault]:
        if it.was_owned:
            names, name = list[str](), ""
            while name := await self._competition_after(name):
                names.append(name)
            place = await self._store.results.place_in(names, it.match)
            where = f"; its result is number {place[1]} of {place[0]}" if place else ""
            kept = "its record is still kept" if it.has_record else "its record is gone too"
            text = f"it was played, but its entry is missing, and {kept}{where}"
            competition = place[0] if place else ""
            mend = partial(self._restore_entry, it, competition) if it.has_record else None
            return [FoundFault(it.match, MatchFault.KIND_LOST, text, mend)]
        unlist = partial(self._traces.unlist, it.match)
        if it.listed_us is None and it.facets is not None:
            text = "it is in sets of matches, but there is no such match"
            return [FoundFault(it.match, MatchFault.KIND_STRAY_ENTRY, text, unlist)]
        if it.listed_us is None or it.kept_until_ms is not None:
            return []  # it is forgotten, or is about to leave the list together with forgotten ones
        text = "it is listed, but there is no such match"
        return [FoundFault(it.match, MatchFault.KIND_STRAY_ENTRY, text, unlist)]

    async def _restore_entry(self, it: MatchTraces, competition: str) -> bool:
        """Write the lost entry of a finished match again. Return False if the record is gone or does not verify.

        The record has all that the entry holds but the ladder or league that has its result (`competition`, empty if none has),
        and its times. The time at which its last referee claimed it takes the place of that of its creation.
        """
        try:
            record = await self._store.matches.get_record(it.match)
        except zlib.error:  # the stored record is damaged
            return False
        if not record or verify_line(record).fault:
            return False
        body = json.loads(record)
        end_ms = (it.fence.over_ms if it.fence else 0) or await now_ms(self._store.client)
        claimed_ms = it.fence.since_ms if it.fence else 0
        fields = _entry_fields(body, replace(setup_of(body), competition=competition), end_ms)
        return await self._traces.restore(it.match, (claimed_ms or end_ms) * 1000, fields)

    async def _examine_over(self, it: MatchTraces, setup: Setup) -> list[FoundFault]:
        assert it.meta
        if "result" not in it.meta.fields:
            return [FoundFault(it.match, MatchFault.KIND_INCOMPLETE, "it is over, but it has no result")]
        end = play_service_pb2.MatchEnded.FromString(it.meta.fields["result"])
        faults = []
        if it.meta.state == MatchState.FINISHED and not it.has_record:
            text = "it is finished, but its record is gone"
            faults.append(FoundFault(it.match, MatchFault.KIND_INCOMPLETE, text))
        if setup.competition and not it.has_job:  # else its delivery is not finished yet
            faults += await self._examine_result(it, setup, end)
        return faults

    async def _examine_result(
        self, it: MatchTraces, setup: Setup, end: play_service_pb2.MatchEnded
    ) -> list[FoundFault]:
        name = setup.competition
        found = await self._store.results.place_in([name], it.match)
        if end.void_reason:
            text = f"it is void, but its result is number {found[1]} of {name}" if found else ""
            return [FoundFault(it.match, MatchFault.KIND_CONTRADICTED, text)] if found else []
        result = logged_result_of(setup, end)
        if found is None:
            text = f"it is finished, but its result is not in the log of {name}"
            append = partial(self._store.results.append_result, name, result)
            return [FoundFault(it.match, MatchFault.KIND_UNLOGGED, text, append)]
        logged = await self._store.results.read_results(name, found[1] - 1, 1)
        if list(map(_comparison_key, logged)) != [_comparison_key(result)]:
            text = f"its result and number {found[1]} of {name} are not the same"
            return [FoundFault(it.match, MatchFault.KIND_CONTRADICTED, text)]
        return []

    async def _examine_open(self, it: MatchTraces, faults: list[FoundFault]) -> list[FoundFault]:
        """Report a match that is not over and that no process will advance. The process that seats a match also lists it."""
        assert it.meta
        queue = it.meta.fields.get("queue", b"").decode()
        if it.has_job:
            return faults
        if it.fence is None and await self._store.queues.is_under_way(queue, it.match):
            return []
        text = "it is not over, but no process seats it or plays it"
        unstick = partial(self._unstick_match, it, queue)
        return [*faults, FoundFault(it.match, MatchFault.KIND_STUCK, text, unstick)]

    async def _unstick_match(self, it: MatchTraces, queue: str) -> bool:
        """Let a match go on, by what happened to it before.

        A match that a referee had, or that is to be aborted, gets a referee. A created match waits again for its
        bots. Any other match is deleted, because it never began.
        """
        assert it.meta
        if it.fence or "abort" in it.meta.fields:
            game = json.loads(it.meta.fields["setup"])["game"]
            await self._store.jobs.push_job(it.match, kind=kind_of_game(game))
        elif queue == CREATED:
            await self._store.queues.enter_queue(CREATED, it.match)
        else:
            return await self._store.matches.drop_unowned(it.match)
        return True

    async def _examine_set(self, it: MatchTraces, setup: Setup, awaited: dict[str, str]) -> list[FoundFault]:
        """Report a record that can never be read, because a match of its set is missing.

        `awaited` remembers the missing match of each set, empty for none.
        """
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


def _is_listed(it: MatchTraces) -> bool:
    """Return whether the match is in the list and in its sets, and a match that is over is in no others."""
    assert it.meta
    wanted = frozenset(it.meta.facets.split()) | sets_of_state(it.meta.state)
    has_all = it.sets == wanted if it.meta.state in OVER else wanted <= it.sets
    return it.listed_us == it.meta.create_us and it.facets == it.meta.facets and has_all


def _unlisted_fault(it: MatchTraces, traces: MatchTraceReader) -> FoundFault:
    assert it.meta
    if it.listed_us is None:
        where = "is not listed"
    elif it.listed_us != it.meta.create_us:
        where = "is listed at the wrong time"
    else:
        where = "is not in the right sets of matches, by which lists are filtered"
    return FoundFault(it.match, MatchFault.KIND_UNLISTED, f"it {where}", partial(traces.relist, it.meta))


def _entry_fields(body: dict[str, Any], setup: Setup, end_ms: int) -> dict[str, Argument]:
    last = decode_entry(canonical_json(body["entries"][-1]))
    assert isinstance(last, Finished), "a record that verifies ends with a result"
    dealt_ms = next(int(entry["at_ms"]) for entry in body["entries"] if entry["kind"] == "dealt")
    seed = b"" if setup.deal_set else setup.seed
    return {
        "format": JOURNAL_FORMAT,
        "setup": canonical_json(setup.to_json()),
        "state": MatchState.FINISHED,
        "queue": setup.competition or CREATED,
        "result": encode_match_ended(last, seed, bytes.fromhex(body["chain"])).SerializeToString(),
        "start_ms": end_ms - (last.at_ms - dealt_ms),
        "end_ms": end_ms,
    }


def _comparison_key(result: LoggedResult) -> tuple[object, ...]:
    """Return what a log entry and a match have in common. Old logs have no chain."""
    return result.match, result.bots, result.points, result.ranks, result.endings, result.deal


async def _report_fault(fault: FoundFault, mends: bool) -> MatchFault:
    is_mended = mends and fault.mend is not None and await fault.mend() is not False
    return MatchFault(match=fault.match, kind=fault.kind, text=fault.text, mended=is_mended)


def _parse_cursor(text: str) -> ListCursor | None:
    if not text:
        return None
    score, _, match = text.partition(" ")
    return ListCursor(parse_position(score), match)


def _parse_log_position(text: str) -> tuple[str, int]:
    """Return the competition, and the number of its last result that was compared."""
    if not text:
        return "", 0
    number, _, competition = text.partition(" ")
    if not competition.startswith((LADDER_PREFIX, LEAGUE_PREFIX)):
        raise bad_page_token()
    return competition, parse_position(number)
