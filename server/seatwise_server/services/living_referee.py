"""Finds a referee for a bot that asks for a match of which its gateway knows nothing: one that is over, for example."""

from __future__ import annotations

import asyncio

from seatwise_server.lobby.capacity import list_living
from seatwise_server.store import Store, now_ms
from seatwise_server.store.errors import StoreUnavailable

REFEREE_KEPT_S = 1.0
"""The time for which an address that was found is used, in seconds."""


class LivingReferee:
    """The address of a referee that lives."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._address = ""
        self._until = 0.0

    async def find_address(self) -> str:
        """Returns the address of the referee with the newest heartbeat; empty if none lives, or if it is the lobby's process."""
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            self._until = now + REFEREE_KEPT_S
            self._address = await self._read_address()
        return self._address

    async def _read_address(self) -> str:
        try:
            beats = await self._store.processes.read_heartbeats()
            living = list_living(list(beats.values()), await now_ms(self._store.client))
        except StoreUnavailable:
            return self._address
        return max(living, key=lambda beat: beat.beat_ms).address if living else ""
