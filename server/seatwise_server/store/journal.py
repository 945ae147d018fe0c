"""A match's journal in Redis: owning it, appending to it, reading it, and swapping it for the record."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from seatwise_server.store import keys
from seatwise_server.store.errors import FenceLost, MatchRetired
from seatwise_server.store.group_commit.writer import AppendResult, AppendTimeouts, Flusher, Listeners
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import LONGEST_BLOCK_MS, RedisClient, call, call_blocking

__all__ = ["AppendResult", "AppendTimeouts", "Death", "Fence", "Flusher", "Journal", "Listeners"]

_COMPRESSION = 3
"""zlib's level: a record of 25 kB takes 0.3 ms, a third of the default's time, and is 10 % longer."""


class Death(StrEnum):
    """Whether, and when, the owner before a claimer has died."""

    NONE = ""
    SOON = "soon"
    """After it had claimed the match."""
    LATE = "late"
    """It had lived with the match for a while."""


FENCE_FIELDS = ("epoch", "owner", "retired", "confirmed", "deaths", "late", "since_ms")
"""What a fence consists of, as `Fence.from_fields` wants it."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Who may write about a match."""

    epoch: int
    owner: str
    is_retired: bool
    """The match is delivered; only its record is left."""
    confirmed: int = 0
    """How often an owner that had been silent has made sure of it; a claimer names what it saw."""
    deaths: int = 0
    """How many owners have died with the match since it last got on, the one that had brought it there included."""
    late: int = 0
    """How many of them had lived with it for a while."""
    since_ms: int = field(default=0, compare=False)
    """When it was claimed, on Redis's clock."""

    @classmethod
    def from_fields(cls, answer: Sequence[bytes | None]) -> Fence | None:
        """The fence from the values of `FENCE_FIELDS`; None when nobody has claimed the match."""
        epoch, owner, retired, *counts = answer
        if epoch is None:
            return None
        return cls(
            int(epoch), (owner or b"").decode(), retired is not None, *(int(count or 0) for count in counts)
        )


class Journal:
    """The journals of all matches on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def claim_match(
        self,
        match: str,
        owner: str,
        expected_epoch: int,
        confirmed: int | None = None,
        death: Death = Death.NONE,
    ) -> int:
        """The new epoch, now that the match belongs to `owner`; expects epoch 0 where there is no fence.

        With `confirmed` only if the owner before has not confirmed its fence since that was read.

        Raises FenceLost when the fence is at another epoch, MatchRetired when the match is over. Asked
        again by the same owner it gives the same answer. Claim first, read the journal afterwards.
        """
        seen = "" if confirmed is None else str(confirmed)
        args = (owner, expected_epoch, seen, death)
        return _parse_epoch(
            match, await scripts.run_script(self._client, "claim", [keys.match_fence(match)], *args)
        )

    async def read_fence(self, match: str) -> Fence | None:
        """Who owns the match; None when nobody ever has, or when the match is forgotten."""
        return Fence.from_fields(await call(self._client, "HMGET", keys.match_fence(match), *FENCE_FIELDS))

    async def confirm_fence(self, match: str, epoch: int, owner: str) -> AppendResult:
        """OK if the match is still this owner's; whoever takes it from now on has seen that the owner lives.

        FENCED if it is another's or over, LOST if Redis has forgotten the claim.
        """
        args = (epoch, owner)
        return AppendResult(
            await scripts.run_script(self._client, "confirm", [keys.match_fence(match)], *args)
        )

    async def clear_deaths(self, match: str, epoch: int, owner: str) -> AppendResult:
        """Of the deaths with this match only the last counts from now on; FENCED if it is another's. Repeatable."""
        named = [keys.match_fence(match)]
        return AppendResult(await scripts.run_script(self._client, "pardon", named, epoch, owner))

    async def reclaim_match(self, match: str, owner: str, epoch: int) -> int:
        """The new epoch of a match whose claim, at `epoch`, Redis has forgotten in a failover.

        It is one that nobody has had, so that bots and zombies cannot take the old past for the new. Only for
        the owner that was told LOST; it holds entries that Redis has not, and the next append writes them again.
        Raises FenceLost when the claim stands after all, or another's does, and MatchRetired.
        """
        return _parse_epoch(
            match, await scripts.run_script(self._client, "reclaim", [keys.match_fence(match)], owner, epoch)
        )

    async def read_entries(self, match: str, after_seq: int = 0) -> list[bytes]:
        """The entries behind `after_seq`, in order; empty when there are none or no journal."""
        return _parse_entries(
            await call(self._client, "XRANGE", keys.match_journal(match), f"{after_seq + 1}-0", "+")
        )

    async def wait_for_entries(self, match: str, after_seq: int, block_ms: int) -> list[bytes]:
        """The entries behind `after_seq`, waiting for the first of them; empty when none came in time.

        Waits at most 5 s and holds a connection while it does. An absent journal is one that has not
        begun: the caller asks the match's meta whether it is over.
        """
        block = max(1, min(block_ms, LONGEST_BLOCK_MS))
        key = keys.match_journal(match)
        answer = await call_blocking(self._client, "XREAD", "BLOCK", block, "STREAMS", key, f"{after_seq}-0")
        if not answer:
            return []
        [(_, found)] = answer.items() if isinstance(answer, dict) else answer
        return _parse_entries(found)

    async def last_seq(self, match: str) -> int:
        """The number of the newest entry, 0 when there is no journal."""
        newest = await call(self._client, "XREVRANGE", keys.match_journal(match), "+", "-", "COUNT", 1)
        return int(newest[0][0].partition(b"-")[0]) if newest else 0

    async def retire_match(
        self,
        match: str,
        epoch: int,
        owner: str,
        record: bytes,
        result: bytes,
        keep_s: int,
        state: str = "over",
    ) -> AppendResult:
        """Swaps the journal for the record, sets result and state, and lets all of it go after `keep_s`.

        A match without journal or meta is retired all the same. May be repeated.
        """
        named = (keys.match_fence, keys.match_journal, keys.match_meta, keys.match_record)
        keep_ms = max(1, keep_s * 1000)
        args = (epoch, owner, zlib.compress(record, _COMPRESSION), result, state, keep_ms)
        return AppendResult(
            await scripts.run_script(self._client, "retire", [name(match) for name in named], *args)
        )


def _parse_epoch(match: str, answer: list[Any]) -> int:
    if answer[0] == 1:
        return int(answer[1])
    if answer[0] == -1:
        raise MatchRetired(match)
    raise FenceLost(match, int(answer[1]), answer[2].decode())


def _parse_entries(found: Any) -> list[bytes]:
    """What stands in the field "e" of each entry of a stream."""
    return [fields[b"e"] for _, fields in found]
