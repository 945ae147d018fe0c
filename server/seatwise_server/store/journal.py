"""A match's journal in Redis: claim the match, append to the journal, read it, and replace it by the record."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from seatwise_server.store import keys
from seatwise_server.store.errors import FenceLost, MatchRetired
from seatwise_server.store.group_commit.writer import AppendResult
from seatwise_server.store.matches import enter_state
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import LONGEST_BLOCK_MS, as_pairs
from seatwise_server.store.redis.scripts import StorePart

_LAST_EPOCH = 2**64 - 1
"""The largest number behind an entry's in an id of a journal."""

_RECORD_COMPRESSION = 3
"""The level of zlib: for a record of 25 kB it takes 0.3 ms, a third of the default's time. The result is 10 % longer."""


class Death(StrEnum):
    """Whether the previous owner of a match died, and how long after its claim."""

    NONE = ""
    SOON = "soon"
    """Shortly after its claim of the match."""
    LATE = "late"
    """After it had owned the match for a while."""


FENCE_FIELDS = ("epoch", "owner", "retired", "confirmed", "deaths", "late", "since_ms")
"""The fields of a fence in Redis, in the order that `Fence.from_fields` expects."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The owner of a match, and its counters; every write to the match is checked against it."""

    epoch: int
    owner: str
    is_retired: bool
    """Whether the match is delivered; only its record is left."""
    confirmed: int = 0
    """The number of times that a silent owner has confirmed its ownership. A claim names the number that it has read."""
    deaths: int = 0
    """The number of owners that died since the match last made progress, including the owner that made the progress."""
    late: int = 0
    """The number of them that had owned the match for a while."""
    since_ms: int = field(default=0, compare=False)
    """The time of the claim, on Redis's clock."""
    over_ms: int = field(default=0, compare=False)
    """The time at which the match was retired, on Redis's clock; 0 if it was not."""

    @classmethod
    def from_fields(cls, answer: Sequence[bytes | None]) -> Fence | None:
        """Return the fence from the values of `FENCE_FIELDS`; None if the match was never claimed."""
        epoch, owner, retired, *counts = answer
        if epoch is None:
            return None
        numbers = (int(number or 0) for number in (*counts, retired))
        return cls(int(epoch), (owner or b"").decode(), retired is not None, *numbers)


class Journal(StorePart):
    """The journals of all matches on one Redis."""

    async def claim_match(
        self,
        match: str,
        owner: str,
        expected_epoch: int,
        confirmed: int | None = None,
        death: Death = Death.NONE,
    ) -> tuple[int, list[bytes]]:
        """Make `owner` the owner of the match. Return the new epoch, and the entries of the journal, which are read after it.

        Expects the fence at `expected_epoch`; 0 means that there is no fence. With `confirmed` the claim succeeds only if the
        previous owner has not confirmed its fence since that number was read. A repeat by the same owner returns the same
        epoch. Raises FenceLost if the fence is at another epoch, and MatchRetired if the match is over.
        """
        seen = "" if confirmed is None else str(confirmed)
        claim = ("claim", _fence_and_journal(match), (owner, expected_epoch, seen, death))
        read = ("XRANGE", keys.match_journal(match), "-", "+")
        answer, found = await scripts.run_and_call(self._client, [claim], [read])
        return _parse_epoch(match, answer), _parse_entries(found)

    async def read_fence(self, match: str) -> Fence | None:
        """Return the fence of the match; None if the match was never claimed, or its fence has expired."""
        return Fence.from_fields(await self._call("HMGET", keys.match_fence(match), *FENCE_FIELDS))

    async def confirm_fence(self, match: str, epoch: int, owner: str) -> AppendResult:
        """Confirm that the match is still this owner's: OK, ALREADY if this owner has retired it, FENCED if it is
        another's, LOST if Redis has forgotten the claim.

        Each OK is counted in the fence, so a claim that relies on an older count fails.
        """
        return AppendResult(await self._run("confirm", [keys.match_fence(match)], epoch, owner))

    async def clear_deaths(self, match: str, epoch: int, owner: str) -> AppendResult:
        """Reset the deaths of this match to 1: only the last one still counts. FENCED if the match is another's. Repeatable."""
        return AppendResult(await self._run("pardon", [keys.match_fence(match)], epoch, owner))

    async def reclaim_match(self, match: str, owner: str, epoch: int) -> int:
        """Return a new epoch for a match whose claim, at `epoch`, Redis has forgotten in a failover.

        No owner has had the new epoch, so bots and former owners cannot mistake the old state for the new one. Only the owner
        that was told LOST may call this: it has the entries that Redis has lost, and its next append writes them again.

        Raises FenceLost if the claim exists after all or is another owner's, and MatchRetired.
        """
        return _parse_epoch(match, await self._run("reclaim", _fence_and_journal(match), owner, epoch))

    async def read_entries(self, match: str, after_seq: int = 0) -> list[bytes]:
        """Return the entries after number `after_seq`, in order; empty if there are none, or no journal."""
        found = await self._call("XRANGE", keys.match_journal(match), f"{after_seq + 1}-0", "+")
        return _parse_entries(found)

    async def wait_for_entries(self, match: str, after_seq: int, block_ms: int) -> list[bytes]:
        """Return the entries after number `after_seq`, and wait for the first of them; empty if none came in time.

        Waits at most 5 s, and uses a connection of its own while it waits. A match that has not begun has no
        journal, nor has one that is over: the caller reads the match's meta to tell them apart.
        """
        block = max(1, min(block_ms, LONGEST_BLOCK_MS))
        key = keys.match_journal(match)
        answer = await self._client.call_blocking(
            "XREAD", "BLOCK", block, "STREAMS", key, f"{after_seq}-{_LAST_EPOCH}"
        )
        if not answer:
            return []
        [(_, found)] = as_pairs(answer)
        return _parse_entries(found)

    async def last_seq(self, match: str) -> int:
        """Return the number of the newest entry; 0 if there is no journal."""
        newest = await self._call("XREVRANGE", keys.match_journal(match), "+", "-", "COUNT", 1)
        return int(newest[0][0].partition(b"-")[0]) if newest else 0

    async def retire_match(
        self, match: str, epoch: int, owner: str, record: bytes, result: bytes, state: str = "over"
    ) -> AppendResult:
        """Replace the journal by the record, and set result and state. `Keeping` removes all of them when their time is up.

        A match without journal or meta is retired as well. Repeatable.
        """
        named = (keys.match_fence, keys.match_journal, keys.match_meta, keys.match_record)
        args = (epoch, owner, zlib.compress(record, _RECORD_COMPRESSION), result, state)
        retire = ("retire", [name(match) for name in named], args)
        return AppendResult((await scripts.run_in_order(self._client, enter_state(match, state), retire))[1])


def _fence_and_journal(match: str) -> list[str]:
    return [keys.match_fence(match), keys.match_journal(match)]


def _parse_epoch(match: str, answer: list[Any]) -> int:
    if answer[0] == 1:
        return int(answer[1])
    if answer[0] == -1:
        raise MatchRetired(match)
    raise FenceLost(match, int(answer[1]), answer[2].decode())


def _parse_entries(found: Any) -> list[bytes]:
    """Return the field "e" of each entry of a stream."""
    return [fields[b"e"] for _, fields in found]
