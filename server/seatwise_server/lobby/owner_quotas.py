"""The quotas of owners at the pairing: which bots wait until their owner may play one match more."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence

import structlog
from cachetools import TTLCache

from seatwise_server.store import OWNERS_PREFIX, OwnerCount, OwnerLimits, Store

MOST_KNOWN_OWNERS = 20_000
"""Bots whose owner is kept in memory."""
OWNER_KNOWN_S = 60.0
"""Seconds for which it is: a bot loses its owner when it is deleted or its owner is erased."""
LEFTOVER_SWEEP_S = 5.0
"""Seconds between two searches for matches that are counted for an owner and are over."""

log = structlog.get_logger()


class OwnerQuotas:
    """Counts the matches of owners for one lobby, and knows which owners have reached a limit.

    A match is counted before its seats are reserved. So no partner is kept for a bot that may not play. The bots of an owner
    that has reached a limit keep their places in the queues and are left there until the owner has room again.
    """

    def __init__(self, store: Store, limits: OwnerLimits) -> None:
        self._store = store
        self._limits = limits
        self._owners: TTLCache[str, str] = TTLCache(MOST_KNOWN_OWNERS, OWNER_KNOWN_S, timer=_loop_time)
        """The owner of each bot that was seen here; empty for a bot that has not been registered by one."""
        self._full: dict[str, frozenset[str]] = {}
        """The bots of each owner that plays as many matches at once as it may."""
        self._spent: dict[str, frozenset[str]] = {}
        """The bots of each owner that has begun as many matches in 24 hours as it may."""
        self._sweep_at = 0.0

    @property
    def left_in_queues(self) -> frozenset[str]:
        """The bots that are not paired in queues and ladders now, because of their owners."""
        return _union(self._full) | _union(self._spent)

    def find_full(self, bots: Collection[str]) -> str | None:
        """Returns one of these bots whose owner plays as many matches at once as it may; None if there is none."""
        full = _union(self._full)
        return next((bot for bot in bots if bot in full), None)

    async def count_match(
        self, match: str, bots: Sequence[str], until_ms: int, *, counts_day: bool = True
    ) -> str | None:
        """Counts the match for the owners of these bots; repeatable. Returns a bot whose owner has reached a limit, or None.

        If there is one, the caller gives the match up and calls `uncount_match`. Without `counts_day` only the limit of matches
        at once applies. Raises ProposalExpired at `until_ms` of Redis's clock or later.
        """
        owners = await self._owners_of(bots)
        named = sorted({owner for owner in owners.values() if owner})
        if not named:
            return None
        answers = await self._store.owner_matches.open_match(
            match, named, until_ms, self._limits, counts_day=counts_day
        )
        at_limit = {
            owner: why for owner, why in zip(named, answers, strict=True) if why is not OwnerCount.COUNTED
        }
        for owner, why in at_limit.items():
            await self._note_limit(owner, why, (bot for bot in bots if owners[bot] == owner))
        return next((bot for bot in bots if owners[bot] in at_limit), None)

    async def uncount_match(self, match: str, bots: Sequence[str], until_ms: int) -> None:
        """Takes `count_match` back for a match that nobody will play."""
        owners = {owner for owner in (await self._owners_of(bots)).values() if owner}
        await self._store.owner_matches.close_match(match, owners, is_void=True, until_ms=until_ms)

    async def find_room(self) -> None:
        """Forgets the owners that may play one match more by now. Costs nothing where no owner has reached a limit."""
        owners = sorted(self._full.keys() | self._spent.keys())
        if not owners:
            return
        if _loop_time() >= self._sweep_at:
            self._sweep_at = _loop_time() + LEFTOVER_SWEEP_S
            for owner in owners:
                await self._store.owner_matches.close_leftovers(owner)
        rooms = await self._store.owner_matches.measure_room(owners, self._limits)
        for owner, room in zip(owners, rooms, strict=True):
            if not room.is_full:
                self._full.pop(owner, None)
            if not room.is_spent:
                self._spent.pop(owner, None)

    async def _note_limit(self, owner: str, why: OwnerCount, bots: Iterable[str]) -> None:
        noted = self._full if why is OwnerCount.FULL else self._spent
        noted[owner] = frozenset([*bots, *await self._store.owners.list_bots(owner)])
        log.debug("owner_at_limit", why=why.name)

    async def _owners_of(self, bots: Sequence[str]) -> dict[str, str]:
        """Returns the owner of each bot; empty for a bot that no owner has registered."""
        found = {bot: owner for bot in bots if (owner := self._owners.get(bot)) is not None}
        unknown = [bot for bot in bots if bot not in found]
        read = await self._store.bots.owners_of(unknown) if unknown else {}
        new = {bot: owner if owner.startswith(OWNERS_PREFIX) else "" for bot, owner in read.items()}
        self._owners.update(new)
        return found | new


def _union(bots: dict[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*bots.values())


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
