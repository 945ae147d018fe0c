"""Reads everything that Redis has of one match, for a check of its consistency, and repairs what is wrong."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from seatwise_server.store import keys
from seatwise_server.store.journal import FENCE_FIELDS, Fence
from seatwise_server.store.matches import STATE_SETS, Matches, MatchMeta
from seatwise_server.store.redis.client import Argument, RedisClient, as_pairs
from seatwise_server.store.redis.scripts import StorePart

_EMPTY_RECORD = len(zlib.compress(b""))
"""The size in bytes of the record of a void match."""


class ListCursor(NamedTuple):
    """A place in the list of matches, or in the list of kept records: a score and a name."""

    score: int
    match: str


@dataclass(frozen=True, slots=True)
class MatchTraces:
    """Everything that Redis has of one match.

    The parts are not read at the same moment: if they do not fit together, read them a second time.
    """

    match: str
    meta: MatchMeta | None
    fence: Fence | None
    has_journal: bool
    has_record: bool
    """Whether there is a record to read; a void match has an empty one."""
    has_job: bool
    listed_us: int | None
    """The creation time in the list of matches, in microseconds; None if the match is not listed."""
    facets: str | None
    """The permanent sets of the match, as the store has them; None if it has none."""
    sets: frozenset[str]
    """The sets in which the match is found, of those in which it may be."""
    kept_until_ms: int | None
    """When the match is to leave the list, in milliseconds of Redis's clock; None if that was never set."""

    @property
    def is_known(self) -> bool:
        """Whether GetMatch can show the match."""
        return self.meta is not None and "setup" in self.meta.fields

    @property
    def was_owned(self) -> bool:
        """Whether a referee has written anything of the match."""
        return self.fence is not None or self.has_journal or self.has_record


class MatchTraceReader(StorePart):
    """Reads and repairs the traces of matches on one Redis."""

    def __init__(self, client: RedisClient, matches: Matches) -> None:
        super().__init__(client)
        self._matches = matches

    async def read(self, match: str) -> MatchTraces:
        """Read everything that Redis has of the match."""
        commands: list[tuple[Argument, ...]] = [
            ("HGETALL", keys.match_meta(match)),
            ("HMGET", keys.match_fence(match), *FENCE_FIELDS),
            ("EXISTS", keys.match_journal(match)),
            ("STRLEN", keys.match_record(match)),
            ("HEXISTS", keys.JOB_MARKERS, match),
            ("ZSCORE", keys.MATCH_INDEX, match),
            ("ZSCORE", keys.MATCH_EXPIRY, match),
            ("HGET", keys.MATCH_FACETS, match),
        ]
        found, fenced, journal, record, job, listed, kept, facets = await self._call_many(commands)
        meta = MatchMeta.from_hash(match, found)
        return MatchTraces(
            match,
            meta,
            Fence.from_fields(fenced),
            bool(journal),
            int(record) > _EMPTY_RECORD,
            bool(job),
            _score(listed),
            None if facets is None else facets.decode(),
            await self._sets_of(match, meta.facets.split() if meta else []),
            _score(kept),
        )

    async def _sets_of(self, match: str, facets: Sequence[str]) -> frozenset[str]:
        named = [*facets, *(f"state/{state}" for state in STATE_SETS)]
        scores = await self._call_many([("ZSCORE", keys.match_set(facet), match) for facet in named])
        return frozenset(facet for facet, score in zip(named, scores, strict=True) if score is not None)

    async def page_of_list(self, after: ListCursor, count: int) -> list[ListCursor]:
        """Return the next entries of the list of matches, oldest first, including entries without a match."""
        return await self._page(keys.MATCH_INDEX, after, count)

    async def scan_facets(self, cursor: int, count: int) -> tuple[int, list[str]]:
        """Return some matches that are in sets, and the next cursor: 0 after the last. Some may come twice."""
        following, found = await self._call("HSCAN", keys.MATCH_FACETS, cursor, "COUNT", count)
        return int(following), [name.decode() for name, _ in as_pairs(found)]

    async def page_of_kept(self, after: ListCursor, count: int) -> list[ListCursor]:
        """Return the next retired matches with the time until which they are kept, soonest first."""
        return await self._page(keys.MATCH_EXPIRY, after, count)

    async def _page(self, key: str, after: ListCursor, count: int) -> list[ListCursor]:
        """Entries with the same score are in the order of their names."""
        offset = 0
        while True:
            limits = ("BYSCORE", "LIMIT", offset, count, "WITHSCORES")
            answer = await self._call("ZRANGE", key, after.score, "+inf", *limits)
            found = [ListCursor(int(score), name.decode()) for name, score in as_pairs(answer)]
            behind = [each for each in found if each > after]
            if behind or not found:
                return behind
            offset += count

    async def absent_among(self, matches: Sequence[str]) -> list[str]:
        """Return those of these matches that have no meta."""
        answers = await self._call_many([("EXISTS", keys.match_meta(match)) for match in matches])
        return [match for match, meta in zip(matches, answers, strict=True) if not meta]

    async def unlisted_among(self, matches: Sequence[str]) -> list[str]:
        """Return those of these matches that are not in the list of matches."""
        answers = await self._call_many([("ZSCORE", keys.MATCH_INDEX, match) for match in matches])
        return [match for match, score in zip(matches, answers, strict=True) if score is None]

    async def strays_among(self, matches: Sequence[str]) -> list[str]:
        """Return those of these matches that are in neither the list nor the list of kept records, and that had no owner."""
        unlisted = await self.unlisted_among(matches)
        kept = await self._call_many([("ZSCORE", keys.MATCH_EXPIRY, match) for match in unlisted])
        owned = await self._call_many([("HEXISTS", keys.match_fence(match), "epoch") for match in unlisted])
        found = zip(unlisted, kept, owned, strict=True)
        return [match for match, until, is_owned in found if until is None and not is_owned]

    async def vanished_among(self, matches: Sequence[str]) -> list[str]:
        """Return those of these matches that have no meta and are in no list, although a fence or a record still exists."""
        absent = await self.unlisted_among(await self.absent_among(matches))
        kept = await self._call_many([("ZSCORE", keys.MATCH_EXPIRY, match) for match in absent])
        fences = await self._call_many([("HEXISTS", keys.match_fence(match), "epoch") for match in absent])
        records = await self._call_many([("EXISTS", keys.match_record(match)) for match in absent])
        found = zip(absent, kept, fences, records, strict=True)
        return [match for match, until, fence, record in found if until is None and (fence or record)]

    async def relist(self, meta: MatchMeta) -> None:
        """Put an existing match into the list and its sets, and remove its entry at any other place."""
        await self._matches.list_match(meta.match, meta.create_us, meta.facets)
        await self._matches.sort_match(meta.match, meta.state)

    async def unlist(self, match: str) -> None:
        """Remove an entry without a match from the list; if the match was created meanwhile, it is listed again."""
        await self._matches.unlist_match(match)
        if meta := await self._matches.get_meta(match):
            await self.relist(meta)

    async def restore(self, match: str, create_us: int, fields: Mapping[str, Argument]) -> bool:
        """Restore a lost meta for as long as the record is kept, and list the match.

        Return False, and changes nothing, if there is a meta, or no record any more.
        """
        named = [keys.match_meta(match), keys.match_record(match)]
        pairs = [part for pair in fields.items() for part in pair]
        if not await self._run("match_restore", named, create_us, *pairs):
            return False
        if meta := await self._matches.get_meta(match):
            await self.relist(meta)
        return True


def _score(answer: Any) -> int | None:
    return None if answer is None else int(float(answer))
