"""Everything that Redis holds of one match, for a check that compares it, and the writes that mend what does not fit."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from seatwise_server.store import keys
from seatwise_server.store.journal import FENCE_FIELDS, Fence
from seatwise_server.store.matches import Matches, MatchMeta
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import Argument, RedisClient, as_pairs, call, call_many

_EMPTY_RECORD = len(zlib.compress(b""))
"""Bytes of the record of a void match."""


class ListCursor(NamedTuple):
    """A place in the list of matches, or in that of kept records: a score and a name."""

    score: int
    match: str


@dataclass(frozen=True, slots=True)
class MatchTraces:
    """What there is of one match. The parts are not of one moment: what looks wrong deserves a second look."""

    match: str
    meta: MatchMeta | None
    fence: Fence | None
    has_journal: bool
    has_record: bool
    """Whether there is a record to read; a void match has none."""
    has_job: bool
    listed_us: int | None
    """The creation time that the list of matches has, in microseconds; None if the match is not listed."""
    kept_until_ms: int | None
    """When the match is to leave the list, in milliseconds of Redis's clock; None if nobody has said."""

    @property
    def is_known(self) -> bool:
        """Whether GetMatch can show it."""
        return self.meta is not None and "setup" in self.meta.fields

    @property
    def was_owned(self) -> bool:
        """Whether a referee has left anything of it."""
        return self.fence is not None or self.has_journal or self.has_record


class MatchTraceReader:
    """Reads and mends the traces of matches on one Redis."""

    def __init__(self, client: RedisClient, matches: Matches) -> None:
        self._client = client
        self._matches = matches

    async def read(self, match: str) -> MatchTraces:
        """Everything there is of the match."""
        commands: list[tuple[Argument, ...]] = [
            ("HGETALL", keys.match_meta(match)),
            ("HMGET", keys.match_fence(match), *FENCE_FIELDS),
            ("EXISTS", keys.match_journal(match)),
            ("STRLEN", keys.match_record(match)),
            ("HEXISTS", keys.JOB_MARKERS, match),
            ("ZSCORE", keys.MATCH_INDEX, match),
            ("ZSCORE", keys.MATCH_EXPIRY, match),
        ]
        meta, fenced, journal, record, job, listed, kept = await call_many(self._client, commands)
        return MatchTraces(
            match,
            MatchMeta.from_hash(match, meta),
            Fence.from_fields(fenced),
            bool(journal),
            int(record) > _EMPTY_RECORD,
            bool(job),
            _score(listed),
            _score(kept),
        )

    async def page_of_list(self, after: ListCursor, count: int) -> list[ListCursor]:
        """The next entries of the list of matches, oldest first, whether or not there is anything behind them."""
        return await self._page(keys.MATCH_INDEX, after, count)

    async def page_of_kept(self, after: ListCursor, count: int) -> list[ListCursor]:
        """The next matches that are over and kept, with the time until which they are, soonest first."""
        return await self._page(keys.MATCH_EXPIRY, after, count)

    async def _page(self, key: str, after: ListCursor, count: int) -> list[ListCursor]:
        """Entries of one score are in the order of their names."""
        offset = 0
        while True:
            limits = ("BYSCORE", "LIMIT", offset, count, "WITHSCORES")
            answer = await call(self._client, "ZRANGE", key, after.score, "+inf", *limits)
            found = [ListCursor(int(score), name.decode()) for name, score in as_pairs(answer)]
            if not found or (behind := [each for each in found if each > after]):
                return behind if found else []
            offset += count

    async def absent_among(self, matches: Sequence[str]) -> list[str]:
        """Those of these matches that have no meta."""
        answers = await self._ask([("EXISTS", keys.match_meta(match)) for match in matches])
        return [match for match, meta in zip(matches, answers, strict=True) if not meta]

    async def unlisted_among(self, matches: Sequence[str]) -> list[str]:
        """Those of these matches that the list of matches does not have."""
        answers = await self._ask([("ZSCORE", keys.MATCH_INDEX, match) for match in matches])
        return [match for match, score in zip(matches, answers, strict=True) if score is None]

    async def vanished_among(self, matches: Sequence[str]) -> list[str]:
        """Those of these matches that have no meta and are in no list, while a fence or a record is still kept."""
        absent = await self.unlisted_among(await self.absent_among(matches))
        kept = await self._ask([("ZSCORE", keys.MATCH_EXPIRY, match) for match in absent])
        fences = await self._ask([("HEXISTS", keys.match_fence(match), "epoch") for match in absent])
        records = await self._ask([("EXISTS", keys.match_record(match)) for match in absent])
        found = zip(absent, kept, fences, records, strict=True)
        return [match for match, until, fence, record in found if until is None and (fence or record)]

    async def _ask(self, commands: Sequence[tuple[Argument, ...]]) -> list[Any]:
        return await call_many(self._client, commands) if commands else []

    async def relist(self, match: str, create_us: int) -> None:
        """Puts a match that there is into the list, at its place; an entry at another place goes."""
        await call(self._client, "ZADD", keys.MATCH_INDEX, create_us, match)

    async def unlist(self, match: str) -> None:
        """Takes an entry off the list behind which there is no match; one that was created meanwhile is put back."""
        await call(self._client, "ZREM", keys.MATCH_INDEX, match)
        meta = await self._matches.get_meta(match)
        if meta:
            await self.relist(match, meta.create_us)

    async def restore(self, match: str, create_us: int, fields: Mapping[str, Argument]) -> bool:
        """Writes a meta that was lost, for as long as the record is kept, and lists the match.

        False, and nothing is changed, when there is a meta, or no record any more.
        """
        named = [keys.match_meta(match), keys.match_record(match)]
        pairs = [part for pair in fields.items() for part in pair]
        if not await scripts.run_script(self._client, "match_restore", named, create_us, *pairs):
            return False
        await self.relist(match, create_us)
        return True


def _score(answer: Any) -> int | None:
    return None if answer is None else int(float(answer))
