"""The stored facts about matches: their meta, their index by age, and their records."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seatwise_referee.ending import MatchState
from seatwise_referee.setup import Setup
from seatwise_server.store import keys
from seatwise_server.store.errors import MatchRetired, ProposalExpired, SetsNotBuilt
from seatwise_server.store.group_commit.writer import AppendResult
from seatwise_server.store.match_filters import (
    OVER,
    SETS_VERSION,
    MatchFilter,
    MatchNames,
    PageCursor,
    enter_state,
    facets_of,
    state_set,
)
from seatwise_server.store.queues import QueueEntry
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import Argument, RedisClient, as_pairs, call, call_many
from seatwise_server.store.redis.scripts import ScriptCall

LARGEST_READ = 1_001
"""The most metas that are read at once: the largest page and one more."""

MOST_METAS_A_PAGE = 3_000
"""The most metas that are read for one page. The limit matters if many of the matches are gone or have left the state."""

_MOST_READS = 20
"""The most commands for one page. The limit matters if few of the matches in one set are in the others."""

_IS_LATE = -2
"""The answer of `match_create.lua` if `until_ms` has passed."""

WAITED_SINCE = "waited_since"
"""Field of a match from a queue in which no-shows count: JSON, from each bot of the queue to the time since
which it waited.
"""

_DROPPED_MS = 3_600_000
"""The time for which a dropped match cannot be claimed or created: far longer than any stall of a process."""


@dataclass(frozen=True, slots=True)
class MatchMeta:
    """A match as lists show it."""

    match: str
    create_us: int
    """The time of creation, in microseconds of Redis's clock."""
    fields: dict[str, bytes]
    """The fields that `create_match` and `set_state` wrote, among them `state` and, after the end, `result`."""

    @property
    def state(self) -> str:
        """The last state that was set; empty before the first."""
        return self.fields.get("state", b"").decode()

    @property
    def is_over(self) -> bool:
        """Whether the match has ended, and its result is stored."""
        return self.state in OVER and "result" in self.fields

    @property
    def facets(self) -> str:
        """The permanent sets of the match, as `list_match` takes them."""
        setup = self.fields.get("setup")
        return facets_of(Setup.from_json(json.loads(setup))) if setup else ""

    @property
    def waited_since(self) -> dict[str, QueueEntry]:
        """The bots that came from a queue in which no-shows count, and their places in it; empty for other matches."""
        since = json.loads(self.fields.get(WAITED_SINCE, b"{}"))
        return {bot: QueueEntry(bot, since_ms) for bot, since_ms in since.items()}

    @property
    def queue(self) -> str:
        """The queue or ladder of the match; empty if it is not known."""
        return self.fields.get("queue", b"").decode()

    @classmethod
    def from_hash(cls, match: str, answer: Any) -> MatchMeta | None:
        """Returns the meta from Redis's answer to HGETALL; None if the match was never created, or its meta has expired."""
        fields = {name.decode(): value for name, value in as_pairs(answer)}
        create_us = fields.pop("create_us", None)
        return None if create_us is None else cls(match, int(create_us), fields)


@dataclass(frozen=True, slots=True)
class StoredMatchPage:
    """Some matches, newest first."""

    matches: tuple[MatchMeta, ...]
    next_page_token: str
    """Empty on the last page."""


def forget_call(match: str, keep_s: int, state: str) -> ScriptCall:
    """Returns the script of `Matches.forget_later`."""
    named = [keys.MATCH_INDEX, keys.MATCH_EXPIRY, keys.KEEPING_TIME]
    return "match_forget", named, (match, keep_s * 1000, keys.MATCH_SETS, state)


class Matches:
    """The meta of all matches on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._has_sets = False

    async def create_match(
        self, match: str, meta: Mapping[str, Argument], until_ms: int | None = None, facets: str = ""
    ) -> bool:
        """Writes the meta and lists the match; returns False, and changes nothing, if the match already
        existed.

        `facets` are the permanent sets of the match, as `facets_of` returns them.

        Raises MatchRetired if the match was dropped a short time ago, because its name is not reused. Raises
        ProposalExpired for a new match if it is `until_ms`, in milliseconds of Redis's clock, or later.
        """
        pairs = [part for pair in meta.items() for part in pair]
        named = [keys.match_meta(match), keys.match_fence(match)]
        made, create_us = await scripts.run_script(
            self._client, "match_create", named, until_ms or "", *pairs
        )
        if made == _IS_LATE:
            raise ProposalExpired(match)
        if made < 0:
            raise MatchRetired(match)
        await self.list_match(match, int(create_us), facets)
        return bool(made)

    async def list_match(self, match: str, create_us: int, facets: str) -> None:
        """Puts an existing match into the index and its sets, and removes its entry at any other place. Repeatable."""
        named = [keys.MATCH_INDEX, keys.MATCH_EXPIRY, keys.MATCH_FACETS]
        args = (match, create_us, keys.MATCH_SETS, facets)
        await scripts.run_script(self._client, "match_list", named, *args)

    async def sort_match(self, match: str, state: str) -> None:
        """Puts a listed match into the set of its state. A match that is over leaves the sets of the others. Repeatable."""
        args = (match, keys.MATCH_SETS, state_set(state))
        await scripts.run_script(self._client, "match_sort", [keys.MATCH_INDEX], *args)

    async def unlist_match(self, match: str) -> None:
        """Removes a match from the index and its sets. Repeatable."""
        named = [keys.MATCH_INDEX, keys.MATCH_FACETS]
        await scripts.run_script(self._client, "match_unlist", named, match, keys.MATCH_SETS)

    async def get_meta(self, match: str) -> MatchMeta | None:
        """Returns the match's meta; None if the match was never created, or its record has expired."""
        return MatchMeta.from_hash(match, await call(self._client, "HGETALL", keys.match_meta(match)))

    async def set_state(
        self,
        match: str,
        epoch: int,
        owner: str,
        state: MatchState,
        more: Mapping[str, Argument] | None = None,
    ) -> AppendResult:
        """Writes the state and `more` fields; FENCED unless `epoch` and `owner` are those of the match's owner."""
        fields = {"state": state, **(more or {})}
        pairs = [part for pair in fields.items() for part in pair]
        named = [keys.match_fence(match), keys.match_meta(match)]
        write = ("match_state", named, (epoch, owner, *pairs))
        return AppendResult((await scripts.run_in_order(self._client, enter_state(match, state), write))[1])

    async def drop_unowned(self, match: str, until_ms: int | None = None) -> bool:
        """Drops a match that never had an owner: from now on it cannot be claimed or created.

        Returns False, and changes nothing, if an owner has left a fence, a journal, a record or a result.
        Repeatable. The index is updated last: after a crash before that it still has the name, which no page
        shows.

        Raises ProposalExpired if it is `until_ms`, in milliseconds of Redis's clock, or later.
        """
        parts = (keys.match_fence, keys.match_journal, keys.match_meta, keys.match_record)
        named = [part(match) for part in parts]
        args = (_DROPPED_MS,) if until_ms is None else (_DROPPED_MS, until_ms)
        answer = await scripts.run_script(self._client, "match_drop", named, *args)
        if answer < 0:
            raise ProposalExpired(match)
        if not answer:
            return False
        await self.unlist_match(match)
        return True

    async def ask_abort(self, match: str, why: str = "") -> bool:
        """Marks the match to be voided by its present or next owner; returns False if the match is not known."""
        return bool(
            await scripts.run_script(self._client, "match_mark", [keys.match_meta(match)], "abort", why)
        )

    async def is_to_be_aborted(self, match: str) -> bool:
        """Whether `ask_abort` was called for the match."""
        return bool(await call(self._client, "HEXISTS", keys.match_meta(match), "abort"))

    async def forget_later(self, match: str, keep_s: int, state: str) -> None:
        """Schedules the removal of a retired match after `keep_s` seconds. Call it after `Journal.retire_match`, with the same state."""
        await scripts.run_in_order(self._client, forget_call(match, keep_s, state))

    async def get_record(self, match: str) -> bytes | None:
        """Returns the record of a match that is over; None while it runs, and after its record has expired."""
        packed = await call(self._client, "GET", keys.match_record(match))
        return zlib.decompress(packed) if packed is not None else None

    async def list_page(
        self, page_size: int, page_token: str = "", wanted: MatchFilter | None = None
    ) -> StoredMatchPage:
        """Returns the newest matches that fit the filter, or those behind the page that ended with the token.

        A page may be short although there are more: it reads at most `MOST_METAS_A_PAGE` metas. Matches whose meta has expired
        are left out. Raises BadPageToken, and SetsNotBuilt for a filter that needs sets while the store has none yet.
        """
        wanted = wanted or MatchFilter()
        names = MatchNames(self._client, wanted, PageCursor.parse(page_token, wanted.digest))
        if wanted.needs_sets:
            await self._check_sets()
        found, count_read, count = list[MatchMeta](), 0, page_size + 1
        for _ in range(_MOST_READS):
            named = await names.read_names(count)
            found += [meta for meta in await self.read_metas(named) if wanted.fits_state(meta.state)]
            count_read += len(named)
            if len(found) > page_size or names.is_at_end or count_read >= MOST_METAS_A_PAGE:
                break
            count = min(2 * count, LARGEST_READ)
        if len(found) > page_size:  # the names that were read after the page are read again later
            found = found[:page_size]
            token = PageCursor(found[-1].create_us, found[-1].match).token(wanted.digest)
        else:
            token = "" if names.is_at_end else names.place.token(wanted.digest)
        return StoredMatchPage(tuple(found), token)

    async def newest_names(self, count: int, wanted: MatchFilter) -> list[str]:
        """Returns the names of the newest matches in the sets of the filter; some may have left the state. One command.

        Raises SetsNotBuilt.
        """
        await self._check_sets()
        return await MatchNames(self._client, wanted, PageCursor.parse("")).read_names(count)

    async def has_complete_sets(self) -> bool:
        """Returns whether every listed match is in its sets, as this version builds them."""
        commands = [
            ("GET", keys.MATCH_SETS_VERSION),
            ("ZCARD", keys.MATCH_INDEX),
            ("HLEN", keys.MATCH_FACETS),
        ]
        built, listed, noted = await call_many(self._client, commands)
        return int(listed) == int(noted) and (built is None or int(built) >= SETS_VERSION)

    async def _check_sets(self) -> None:
        """Raises SetsNotBuilt if the sets are not built. A match that an older version lists later is missing
        for at most a minute.
        """
        self._has_sets = self._has_sets or await self.has_complete_sets()
        if not self._has_sets:
            raise SetsNotBuilt("the lists of matches are being prepared for filters; try again soon")

    async def read_metas(self, named: list[str]) -> list[MatchMeta]:
        """Returns the metas of these matches, in their order, without those that have none."""
        if not named:
            return []
        answers = await call_many(self._client, [("HGETALL", keys.match_meta(match)) for match in named])
        metas = (MatchMeta.from_hash(match, answer) for match, answer in zip(named, answers, strict=True))
        return [meta for meta in metas if meta is not None]
