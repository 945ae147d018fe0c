"""Counts the watches that an owner and its bots have open, at all processes together."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import Caller
from seatwise_server.store import OWNERS_PREFIX, OwnerLimits, Store
from seatwise_server.store.errors import StoreUnavailable

WATCH_LEASE_MS = 60_000
"""Milliseconds for which a watch is counted after its process has died."""
WATCH_RENEW_S = 20.0
"""Seconds between two renewals of that lease."""


class OwnerWatches:
    """The watches of owners at one process. Callers that are neither an owner nor a bot of one are not counted here."""

    def __init__(self, store: Store, limits: OwnerLimits) -> None:
        """`limits` are the quotas of owners that have none of their own."""
        self._bots = store.bots
        self._owner_matches = store.owner_matches
        self._limits = limits

    @asynccontextmanager
    async def count_watch(self, caller: Caller) -> AsyncIterator[None]:
        """Counts a watch inside this block. Raises `Refusal` QUOTA_EXCEEDED if the caller's owner has as many as it may have."""
        owner = await self._owner_of(caller)
        if not owner:
            yield
            return
        watch = secrets.token_hex(8)
        if not await self._open_watch(owner, watch):
            message = (
                "you and your bots watch as many matches as your quota allows; end a watch, and try again"
            )
            raise Refusal("QUOTA_EXCEEDED", message, retry_after="5")
        renewing = asyncio.create_task(self._renew_lease(owner, watch))
        try:
            yield
        finally:
            await cancel_until_ended([renewing])
            with suppress(StoreUnavailable):  # then its lease ends by itself
                await self._owner_matches.close_watch(owner, watch)

    async def _owner_of(self, caller: Caller) -> str:
        if not caller.bot:
            return caller.owner
        owner = (await self._bots.owners_of([caller.bot]))[caller.bot]
        return owner if owner.startswith(OWNERS_PREFIX) else ""

    async def _open_watch(self, owner: str, watch: str) -> bool:
        return await self._owner_matches.open_watch(owner, watch, WATCH_LEASE_MS, self._limits)

    async def _renew_lease(self, owner: str, watch: str) -> None:
        while True:
            await asyncio.sleep(WATCH_RENEW_S)
            with suppress(StoreUnavailable):
                await self._open_watch(owner, watch)
