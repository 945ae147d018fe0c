"""The matches that the bots of an owner play, and the watches that it has open, counted for all processes.

Names are counted, not numbers, so a step that is repeated after a crash counts nothing twice. A match that was left by an
accident is found by its state (`close_leftovers`). A watch is counted only as long as its lease.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum

from seatwise_referee.ending import MatchState
from seatwise_server.store import keys
from seatwise_server.store.errors import ProposalExpired
from seatwise_server.store.matches import OVER
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import Argument, RedisClient, as_pairs, call, call_many
from seatwise_server.store.redis.scripts import now_ms

OWNERS_PREFIX = "owners/"
"""The owner of a bot begins with it if the owner has registered the bot itself."""
LEFTOVER_MS = 60_000
"""A match is counted before its seats are reserved. After this time it either exists, or nobody will create it."""


@dataclass(frozen=True, slots=True)
class OwnerLimits:
    """The quotas of owners that have none of their own; 0 for no limit."""

    at_once: int = 0
    """Matches that all bots of the owner play at once."""
    a_day: int = 0
    """Matches that they begin in 24 hours."""
    watches: int = 0
    """Watches that are open at once."""


class OwnerCount(IntEnum):
    """The outcome of counting a match among those of an owner."""

    COUNTED = 1
    FULL = 3
    """The owner's bots play as many matches at once as they may."""
    SPENT = 4
    """They have begun as many matches in 24 hours as they may."""
    LATE = 5
    """The lobby's time to seat the match is over."""


@dataclass(frozen=True, slots=True)
class OwnerRoom:
    """How many more matches the bots of an owner may begin. None means: without a limit."""

    at_once: int | None
    of_day: int | None
    back_ms: int
    """When the oldest match leaves the last 24 hours, in milliseconds of Redis's clock since 1970; 0 if there is none."""
    open_matches: int
    """The matches that they play."""
    day_matches: int
    """The matches of the last 24 hours, as far as they are counted."""

    @property
    def is_full(self) -> bool:
        """Whether they play as many matches at once as they may."""
        return self.at_once == 0

    @property
    def is_spent(self) -> bool:
        """Whether they have begun as many matches in 24 hours as they may."""
        return self.of_day == 0


class OwnerMatches:
    """The matches and watches of all owners on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def open_match(
        self, match: str, owners: Sequence[str], until_ms: int, limits: OwnerLimits, *, counts_day: bool
    ) -> list[OwnerCount]:
        """Counts the match among those of each owner; repeatable. An owner that does not exist has no limit.

        With `counts_day` the quota of 24 hours applies, too. Raises ProposalExpired if it is `until_ms`, in milliseconds of
        Redis's clock, or later.
        """
        args: tuple[Argument, ...] = (
            match,
            until_ms,
            limits.at_once,
            limits.a_day,
            "1" if counts_day else "",
        )
        calls = [(_match_keys(owner), args) for owner in owners]
        answers = await scripts.run_script_many(self._client, "owner_match_open", calls)
        found = [OwnerCount(answer) for answer in answers]
        if OwnerCount.LATE in found:
            raise ProposalExpired(match)
        return found

    async def close_match(
        self, match: str, owners: Collection[str], *, is_void: bool, until_ms: int | None = None
    ) -> None:
        """Counts the match no more among those that are played; repeatable. A void one does not count in 24 hours either.

        Does nothing if it is `until_ms`, in milliseconds of Redis's clock, or later.
        """
        if owners:
            args = (match, "1" if is_void else "", *(() if until_ms is None else (until_ms,)))
            calls = [(_match_keys(owner)[1:], args) for owner in sorted(owners)]
            await scripts.run_script_many(self._client, "owner_match_close", calls)

    async def measure_room(self, owners: Sequence[str], limits: OwnerLimits) -> list[OwnerRoom]:
        """Returns how many more matches the bots of each owner may begin."""
        calls = [(_match_keys(owner), (limits.at_once, limits.a_day)) for owner in owners]
        answers = await scripts.run_script_many(self._client, "owner_room", calls)
        return [_parse_room(*answer) for answer in answers]

    async def close_leftovers(self, owner: str) -> int:
        """Counts no more the matches of the owner that are over, or were never created; returns how many these were.

        There are some if a bot was deleted while it played, or if a process of an older version ended the match.
        Void matches and those that were never created do not count in 24 hours either.
        """
        matches = await self._read_old(owner)
        commands = [("HGET", keys.match_meta(match), "state") for match in matches]
        states = await call_many(self._client, commands) if commands else []
        named = zip(matches, states, strict=True)
        left = {match: state for match, state in named if state is None or state.decode() in OVER}
        for match, state in left.items():
            await self.close_match(
                match, (owner,), is_void=state is None or state.decode() == MatchState.VOIDED
            )
        return len(left)

    async def _read_old(self, owner: str) -> list[str]:
        found = await call(self._client, "ZRANGE", keys.owner_open_matches(owner), 0, -1, "WITHSCORES")
        if not found:
            return []
        before_ms = await now_ms(self._client) - LEFTOVER_MS
        return [match.decode() for match, since_ms in as_pairs(found) if int(since_ms) < before_ms]

    async def open_watch(self, owner: str, watch: str, lease_ms: int, limits: OwnerLimits) -> bool:
        """Counts a watch until its lease ends, or renews the lease; returns False if the owner has as many as it may have."""
        named = [keys.owner(owner), keys.owner_watches(owner)]
        args = (watch, lease_ms, limits.watches)
        return bool(await scripts.run_script(self._client, "owner_watch_open", named, *args))

    async def close_watch(self, owner: str, watch: str) -> None:
        """Counts the watch no more. Repeatable."""
        await call(self._client, "ZREM", keys.owner_watches(owner), watch)


def _match_keys(owner: str) -> list[str]:
    return [keys.owner(owner), keys.owner_open_matches(owner), keys.owner_day_matches(owner)]


def _parse_room(at_once: int, of_day: int, back_ms: int, open_matches: int, day_matches: int) -> OwnerRoom:
    left = [None if room < 0 else room for room in (at_once, of_day)]
    return OwnerRoom(left[0], left[1], int(back_ms), open_matches, day_matches)
