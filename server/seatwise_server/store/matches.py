"""Matches: their meta, records and lists. The sets in Redis make filters of lists cheap.

A match enters a set before its meta has the new state, and leaves it afterwards. So a set never lacks a match that fits the
filter, and a reader checks the state in the meta. The scripts are `match_list`, `match_enter_state` and `match_forget`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatwise_referee.ending import MatchState
from seatwise_referee.setup import Setup
from seatwise_server.store import keys
from seatwise_server.store.errors import BadPageToken, MatchRetired, ProposalExpired
from seatwise_server.store.group_commit.writer import AppendResult
from seatwise_server.store.queues import QueueEntry
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import Argument, RedisClient, as_pairs
from seatwise_server.store.redis.scripts import ScriptCall, StorePart

OPEN = "OPEN"
"""The set of all matches that are not over."""

OVER = (MatchState.FINISHED, MatchState.VOIDED)

STATE_SETS = (OPEN, MatchState.RUNNING, MatchState.FINISHED, MatchState.VOIDED)

MOST_SEEN_AT_ONCE = 1_000
"""The most entries of a set that one run of the script reads, which takes about a millisecond of Redis."""

NEWEST_US = 2**62
"""Higher than every creation time."""

LARGEST_READ = 1_001
"""The most metas that are read at once: the largest page and one more."""

MOST_METAS_A_PAGE = 3_000
"""The most metas that are read for one page. The limit matters if many of the matches are gone or have left the state."""

_MOST_READS = 20
"""The most commands for one page. The limit matters if few of the matches in one set are in the others."""

_IS_LATE = -2
"""The answer of `match_create.lua` if `until_ms` has passed."""

WAITED_SINCE = "waited_since"
"""Field of a match from a queue in which no-shows count: JSON, from each bot of the queue to the time since which it waited."""

_DROPPED_MS = 3_600_000
"""The time for which a dropped match cannot be claimed or created: far longer than any stall of a process."""


@dataclass(frozen=True, slots=True)
class MatchFilter:
    """Narrows a list. A match must fit all fields; an empty field fits every match."""

    bot: str = ""
    """Format: bots/{bot}/versions/{version}."""
    game: str = ""
    """The name of the game in the referee, for example "ugo"."""
    competition: str = ""
    """Format: ladders/{ladder} or leagues/{league}."""
    state: MatchState | None = None
    since_us: int = 0
    """Fits matches that were created then or later, in microseconds of Redis's clock."""
    until_us: int = NEWEST_US
    """Fits matches that were created before then."""

    @property
    def sets(self) -> list[str]:
        """The keys of the sets that a match must be in; the index if there are no others."""
        facets = _facets((self.bot,) if self.bot else (), self.game, self.competition)
        if self.state:
            facets.append(f"state/{state_set(self.state)}")
        return [keys.match_set(facet) for facet in facets] or [keys.MATCH_INDEX]

    @property
    def digest(self) -> str:
        """Empty for a filter that fits every match; different for different filters."""
        if self == MatchFilter():
            return ""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


def facets_of(setup: Setup) -> str:
    """Return the permanent sets of the match, in the form that `match_list` takes: facets with spaces between them."""
    return " ".join(_facets(dict.fromkeys(setup.bots), setup.game, setup.competition))


def state_set(state: str) -> str:
    """Return the name of the set that has all matches of this state, and possibly others."""
    return OPEN if state in (MatchState.WAITING, MatchState.SEATING) else state


def sets_of_state(state: str) -> frozenset[str]:
    """Return the state sets that must have a match of this state. A match that is over must be in no others."""
    return frozenset({f"state/{state_set(state)}"} | (set() if state in OVER else {f"state/{OPEN}"}))


def enter_state(match: str, state: str) -> ScriptCall:
    """Return the script, for `run_in_order`, that must run before the one that writes this state into the meta."""
    sets = [keys.match_set(f"state/{OPEN}"), keys.match_set(f"state/{state_set(state)}")]
    return "match_enter_state", sets, (match,)


def _facets(bots: Sequence[str] | dict[str, None], game: str, competition: str) -> list[str]:
    found = [f"bot/{bot}" for bot in bots]
    found += [f"game/{game}"] if game else []
    return found + ([f"competition/{competition}"] if competition else [])


@dataclass(frozen=True, slots=True, order=True)
class PageCursor:
    """A place in the list, between two matches."""

    create_us: int
    match: str

    @classmethod
    def parse(cls, token: str, digest: str = "") -> PageCursor:
        """Return the place that a page token of this filter names; "" is before the newest match. Raises BadPageToken."""
        if not token:
            return cls(NEWEST_US, "")
        try:
            create_us, match, *rest = base64.urlsafe_b64decode(token.encode()).decode().split(" ")
            place = cls(int(create_us), match)
        except (binascii.Error, ValueError) as error:
            raise BadPageToken("the page token is not one that this list gave out") from error
        if rest != ([digest] if digest else []) or not 0 <= place.create_us <= NEWEST_US:
            raise BadPageToken("the page token is not one that this list gave out for these filters")
        return place

    def token(self, digest: str = "") -> str:
        """Return the place as an opaque page token."""
        parts = (str(self.create_us), self.match, digest) if digest else (str(self.create_us), self.match)
        return base64.urlsafe_b64encode(" ".join(parts).encode()).decode()


class MatchNames(StorePart):
    """Reads the names of the matches that fit a filter, newest first."""

    def __init__(self, client: RedisClient, wanted: MatchFilter, start: PageCursor) -> None:
        super().__init__(client)
        self._wanted = wanted
        self._passed = 0
        """The number of entries with the same microsecond as `place` that were read before it."""
        self.place = start
        """The last entry that was read, including those that do not fit."""
        self.is_at_end = False

    async def read_names(self, count: int) -> list[str]:
        """Read the next names, at most `count`, in one command. It may return none although more follow.

        The set of a state has every match of that state, and others that have left it.
        """
        highest = min(self.place.create_us, self._wanted.until_us - 1)
        args = (highest, self._wanted.since_us, self._passed, count, MOST_SEEN_AT_ONCE)
        answer = await self._run("match_page", self._wanted.sets, *args)
        passed, is_at_end, last_name, last_score, *found = answer
        places = [_place(name, score) for name, score in as_pairs(found)]
        names = [it.match for it in places if it < self.place]
        last = _place(last_name, last_score) if last_name else self.place
        self._passed = 0 if last < self.place else passed
        self.place, self.is_at_end = min(last, self.place), bool(is_at_end)
        return names


def _place(name: bytes, score: bytes) -> PageCursor:
    return PageCursor(int(float(score)), name.decode())


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
        """Return the meta from Redis's answer to HGETALL; None if the match was never created, or its meta has expired."""
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
    """Return the script of `Matches.forget_later`."""
    named = [keys.MATCH_INDEX, keys.MATCH_EXPIRY, keys.KEEPING_TIME]
    return "match_forget", named, (match, keep_s * 1000, keys.MATCH_SETS, state)


class Matches(StorePart):
    """The meta of all matches on one Redis."""

    async def create_match(
        self, match: str, meta: Mapping[str, Argument], until_ms: int | None = None, facets: str = ""
    ) -> bool:
        """Write the meta and list the match; returns False, and changes nothing, if the match already existed.

        `facets` are its permanent sets, as `facets_of` returns them. Raises MatchRetired if the match was dropped a short time
        ago: its name is not reused. Raises ProposalExpired for a new match at `until_ms` of Redis's clock or later.
        """
        pairs = [part for pair in meta.items() for part in pair]
        named = [keys.match_meta(match), keys.match_fence(match)]
        made, create_us = await self._run("match_create", named, until_ms or "", *pairs)
        if made == _IS_LATE:
            raise ProposalExpired(match)
        if made < 0:
            raise MatchRetired(match)
        await self.list_match(match, int(create_us), facets)
        return bool(made)

    async def list_match(self, match: str, create_us: int, facets: str) -> None:
        """Put an existing match into the index and its sets, and remove its entry at any other place. Repeatable."""
        named = [keys.MATCH_INDEX, keys.MATCH_EXPIRY, keys.MATCH_FACETS]
        await self._run("match_list", named, match, create_us, keys.MATCH_SETS, facets)

    async def sort_match(self, match: str, state: str) -> None:
        """Put a listed match into the set of its state. A match that is over leaves the sets of the others. Repeatable."""
        await self._run("match_sort", [keys.MATCH_INDEX], match, keys.MATCH_SETS, state_set(state))

    async def unlist_match(self, match: str) -> None:
        """Remove a match from the index and its sets. Repeatable."""
        named = [keys.MATCH_INDEX, keys.MATCH_FACETS]
        await self._run("match_unlist", named, match, keys.MATCH_SETS)

    async def get_meta(self, match: str) -> MatchMeta | None:
        """Return the match's meta; None if the match was never created, or its record has expired."""
        return MatchMeta.from_hash(match, await self._call("HGETALL", keys.match_meta(match)))

    async def set_state(self, match: str, epoch: int, owner: str, state: MatchState) -> AppendResult:
        """Write the state; FENCED unless `epoch` and `owner` are those of the match's owner."""
        named = [keys.match_fence(match), keys.match_meta(match)]
        write = ("match_state", named, (epoch, owner, state))
        return AppendResult((await scripts.run_in_order(self._client, enter_state(match, state), write))[1])

    async def drop_unowned(self, match: str, until_ms: int | None = None) -> bool:
        """Drop a match that never had an owner: from now on it cannot be claimed or created.

        Return False, and change nothing, if an owner has left a fence, a journal, a record or a result. Repeatable. The index
        is updated last: after a crash before that it still has the name, which no page shows. Raises ProposalExpired if it is
        `until_ms`, in milliseconds of Redis's clock, or later.
        """
        parts = (keys.match_fence, keys.match_journal, keys.match_meta, keys.match_record)
        args = (_DROPPED_MS,) if until_ms is None else (_DROPPED_MS, until_ms)
        answer = await self._run("match_drop", [part(match) for part in parts], *args)
        if answer < 0:
            raise ProposalExpired(match)
        if not answer:
            return False
        await self.unlist_match(match)
        return True

    async def ask_abort(self, match: str, why: str = "") -> bool:
        """Mark the match to be voided by its present or next owner; returns False if the match is not known."""
        return bool(await self._run("match_mark", [keys.match_meta(match)], "abort", why))

    async def is_to_be_aborted(self, match: str) -> bool:
        """Whether `ask_abort` was called for the match."""
        return bool(await self._call("HEXISTS", keys.match_meta(match), "abort"))

    async def get_record(self, match: str) -> bytes | None:
        """Return the record of a match that is over; None while it runs, and after its record has expired."""
        packed = await self._call("GET", keys.match_record(match))
        return zlib.decompress(packed) if packed is not None else None

    async def list_page(
        self, page_size: int, page_token: str = "", wanted: MatchFilter | None = None
    ) -> StoredMatchPage:
        """Return the newest matches that fit the filter, or those behind the page that ended with the token.

        A page may be short although there are more: it reads at most `MOST_METAS_A_PAGE` metas. Matches whose meta has expired
        are left out. Raises BadPageToken.
        """
        wanted = wanted or MatchFilter()
        names = MatchNames(self._client, wanted, PageCursor.parse(page_token, wanted.digest))
        found, count_read, count = list[MatchMeta](), 0, page_size + 1
        for _ in range(_MOST_READS):
            named = await names.read_names(count)
            found += [meta for meta in await self.read_metas(named) if wanted.state in (None, meta.state)]
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
        """Return the names of the newest matches in the sets of the filter; some may have left the state. One command."""
        return await MatchNames(self._client, wanted, PageCursor.parse("")).read_names(count)

    async def read_metas(self, named: list[str]) -> list[MatchMeta]:
        """Return the metas of these matches, in their order, without those that have none."""
        answers = await self._call_many([("HGETALL", keys.match_meta(match)) for match in named])
        metas = (MatchMeta.from_hash(match, answer) for match, answer in zip(named, answers, strict=True))
        return [meta for meta in metas if meta is not None]
