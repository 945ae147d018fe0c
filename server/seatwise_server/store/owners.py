"""Owners of bots: their quotas, the matches that their bots play, and the watches that they have open."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

from seatwise_referee.ending import MatchState
from seatwise_server.store import keys
from seatwise_server.store.errors import OwnerAbsent, ProposalExpired, TooManyBots
from seatwise_server.store.matches import OVER
from seatwise_server.store.redis.client import Argument, as_pairs
from seatwise_server.store.redis.scripts import StorePart, now_ms

_ADDED = 1
_ABSENT = 2
_HOLDER_ID_BYTES = 16
_OPERATOR_ID = b"-"
"""Holds the names of bots that no owner has registered."""
_QUOTAS_OF_SERVER = ("most_requests", "most_matches_at_once", "most_matches_a_day", "most_watches")
"""The fields of quotas that an owner does not have while those of the server apply."""

OWNERS_PREFIX = "owners/"
"""The owner of a bot begins with it if the owner has registered the bot itself."""

LEFTOVER_MS = 60_000
"""A match is counted before its seats are reserved. After this time it either exists, or nobody will create it."""


class OwnerCreation(Enum):
    """The outcome of the creation of an owner."""

    TAKEN = 0
    """Another request has created an owner of this name."""
    CREATED = 1
    REPEATED = 2
    """This very request has created it before."""


@dataclass(frozen=True, slots=True)
class StoredOwner:
    """An owner."""

    name: str
    """Format: owners/{owner}."""
    bots: tuple[str, ...]
    """In the order of their names. Format: bots/{bot}/versions/{version}."""
    most_bots: int
    create_ms: int
    """Milliseconds of Redis's clock since 1970."""
    most_matches: int
    """The most matches that each of its bots plays at once."""
    most_requests: int | None = None
    """The most changes that it makes in a minute; None: as many as the server allows every owner. So for the next three."""
    most_matches_at_once: int | None = None
    """The most matches that all its bots play at once."""
    most_matches_a_day: int | None = None
    """The most matches that they begin in 24 hours."""
    most_watches: int | None = None
    """The most watches that it has open at once."""


class Owners(StorePart):
    """The owners on one Redis. The names of their keys hold hashes of their names."""

    async def create_owner(
        self, name: str, most_bots: int, most_matches: int, invite: str, request_id: str
    ) -> OwnerCreation:
        """Create an owner with these quotas, for an invite. A repeat of the same request (if it has an id) creates nothing."""
        args = (most_bots, invite, request_id, most_matches)
        return OwnerCreation(await self._run("owner_create", [keys.owner(name)], *args))

    async def read_pseudonym_secret(self) -> bytes:
        """Return the secret from which the ids of owners follow that an issuer has named; the first call makes it."""
        return await self._read_secret(keys.OWNER_PSEUDONYM_SECRET)

    async def drop_owner(self, name: str) -> None:
        """Take back the creation of an owner that has nothing yet."""
        await self._call("UNLINK", keys.owner(name))

    async def get_owner(self, name: str) -> StoredOwner | None:
        """Return the owner; None if there is none, or if it was erased."""
        fields = ("most_bots", "create_ms", "most_matches", *_QUOTAS_OF_SERVER)
        bots, made, matches, *own = await self._call("HMGET", keys.owner(name), *fields)
        if not made:
            return None
        quotas = [None if quota is None else int(quota) for quota in own]
        names = tuple(await self.list_bots(name))
        return StoredOwner(name, names, int(bots), int(made), int(matches or 0), *quotas)

    async def list_bots(self, name: str) -> list[str]:
        """Return the bots of the owner, in the order of their names."""
        return sorted(bot.decode() for bot in await self._call("SMEMBERS", keys.owner_bots(name)))

    async def count_request(self, name: str, per_minute: float) -> tuple[float, int, float]:
        """Count a change that the owner is about to make.

        Return 0, or the seconds until it may come back; its quota, 0 for none; and the seconds until all of that is there again.
        `per_minute` changes in a minute are the quota of owners that have none of their own; 0 for no limit.
        """
        args = (f"{per_minute:g}",)
        wait_ms, quota, full_ms = await self._run("owner_request", [keys.owner(name)], *args)
        return wait_ms / 1000, quota, full_ms / 1000

    async def read_most_matches(self, name: str) -> int | None:
        """Return how many matches each bot of the owner may play at once; None if there is no such owner."""
        found = await self._call("HGET", keys.owner(name), "most_matches")
        return None if found is None else int(found)

    async def add_bot(self, name: str, bot: str) -> None:
        """Count a bot as the owner's. Repeatable. Raises OwnerAbsent and TooManyBots."""
        named = [keys.owner(name), keys.owner_bots(name)]
        answer = await self._run("owner_add_bot", named, bot)
        if answer == _ABSENT:
            raise OwnerAbsent(f"there is no {name}")
        if answer != _ADDED:
            raise TooManyBots(f"{name} has as many bots as it may have")

    async def claim_name(self, owner: str, bot: str) -> bool:
        """Give the name that the versions of this bot share to the owner for good; returns False if another has it.

        Repeatable. An owner that does not exist stands for the operator. Of an owner that is erased nobody gets the names.
        """
        fresh_id = secrets.token_hex(_HOLDER_ID_BYTES)
        held = await self._run("owner_holder_id", [keys.owner(owner)], fresh_id)
        key = keys.bot_name_holder(bot.split("/")[1])
        return bool(await self._run("bot_name_claim", [key], held or _OPERATOR_ID))

    async def has_bot(self, name: str, bot: str) -> bool:
        """Whether the bot is the owner's."""
        return bool(await self._call("SISMEMBER", keys.owner_bots(name), bot))

    async def remove_bot(self, name: str, bot: str) -> None:
        """Do not count a bot any more. Repeatable."""
        await self._call("SREM", keys.owner_bots(name), bot)

    async def set_quotas(self, name: str, quotas: Mapping[str, int]) -> None:
        """Set quotas, by the names of their fields. Raises OwnerAbsent."""
        args = [it for pair in quotas.items() for it in pair]
        if not await self._run("owner_set_quotas", [keys.owner(name)], *args):
            raise OwnerAbsent(f"there is no {name}")

    async def erase_owner(self, name: str) -> None:
        """Delete all that is known of the owner. Its bots stay, without an owner. Repeatable."""
        invite = await self._call("HGET", keys.owner(name), "invite")
        if invite:
            await self._call("HDEL", keys.invite(invite.decode()), f"by:{keys.owner_hash(name)}")
        held = (keys.owner_open_matches(name), keys.owner_day_matches(name), keys.owner_watches(name))
        await self._call("UNLINK", keys.owner(name), keys.owner_bots(name), *held)


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


class OwnerMatches(StorePart):
    """The matches and watches of all owners on one Redis."""

    async def open_match(
        self, match: str, owners: Sequence[str], until_ms: int, limits: OwnerLimits, *, counts_day: bool
    ) -> list[OwnerCount]:
        """Count the match among those of each owner; repeatable. An owner that does not exist has no limit.

        With `counts_day` the quota of 24 hours applies, too. Raises ProposalExpired if it is `until_ms`, in milliseconds of
        Redis's clock, or later.
        """
        quotas = limits.at_once, limits.a_day
        args: tuple[Argument, ...] = (match, until_ms, *quotas, "1" if counts_day else "")
        calls = [(_match_keys(owner), args) for owner in owners]
        answers = await self._run_many("owner_match_open", calls)
        found = [OwnerCount(answer) for answer in answers]
        if OwnerCount.LATE in found:
            raise ProposalExpired(match)
        return found

    async def close_match(
        self, match: str, owners: Collection[str], *, is_void: bool, until_ms: int | None = None
    ) -> None:
        """Count the match no more among those that are played; repeatable. A void one does not count in 24 hours either.

        Raises ProposalExpired if it is `until_ms`, in milliseconds of Redis's clock, or later.
        """
        if owners:
            args = (match, "1" if is_void else "", *(() if until_ms is None else (until_ms,)))
            calls = [(_match_keys(owner)[1:], args) for owner in sorted(owners)]
            if min(await self._run_many("owner_match_close", calls)) < 0:
                raise ProposalExpired(match)

    async def measure_room(self, owners: Sequence[str], limits: OwnerLimits) -> list[OwnerRoom]:
        """Return how many more matches the bots of each owner may begin."""
        calls = [(_match_keys(owner), (limits.at_once, limits.a_day)) for owner in owners]
        answers = await self._run_many("owner_room", calls)
        return [
            OwnerRoom(_read_room(at_once), _read_room(of_day), int(back_ms), *played)
            for at_once, of_day, back_ms, *played in answers
        ]

    async def close_leftovers(self, owner: str) -> int:
        """Count no more the matches of the owner that are over, or were never created; returns how many these were.

        There are some if a bot was deleted while it played. Void ones and those never created do not count in 24 hours either.
        """
        if not (found := await self._call("ZRANGE", keys.owner_open_matches(owner), 0, -1, "WITHSCORES")):
            return 0
        before_ms = await now_ms(self._client) - LEFTOVER_MS
        matches = [match.decode() for match, since_ms in as_pairs(found) if int(since_ms) < before_ms]
        states = await self._call_many([("HGET", keys.match_meta(match), "state") for match in matches])
        named = zip(matches, states, strict=True)
        left = {match: state for match, state in named if state is None or state.decode() in OVER}
        for match, state in left.items():
            is_void = state is None or state.decode() == MatchState.VOIDED
            await self.close_match(match, (owner,), is_void=is_void)
        return len(left)

    async def open_watch(self, owner: str, watch: str, lease_ms: int, limits: OwnerLimits) -> bool:
        """Count a watch until its lease ends, or renew the lease; returns False if the owner has as many as it may have."""
        named = [keys.owner(owner), keys.owner_watches(owner)]
        args = (watch, lease_ms, limits.watches)
        return bool(await self._run("owner_watch_open", named, *args))

    async def close_watch(self, owner: str, watch: str) -> None:
        """Count the watch no more. Repeatable."""
        await self._call("ZREM", keys.owner_watches(owner), watch)


def _read_room(answer: int) -> int | None:
    return None if answer < 0 else answer


def _match_keys(owner: str) -> list[str]:
    return [keys.owner(owner), keys.owner_open_matches(owner), keys.owner_day_matches(owner)]
