"""How many more matches the referees can take: bots wait in their queues, not at closed doors."""

from __future__ import annotations

import asyncio

from seatwise_server.store import Heartbeat, Store, now_ms
from seatwise_server.timings import REFEREE_SILENT_MS

FRESH_S = 0.5
"""How old may be what is known of the referees; the matches are counted anew each time."""


class Capacity:
    """As one lobby sees it: all tables of all who live, less all matches, wherever these are."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tables = 0
        self._until = 0.0

    async def count_free_tables(self) -> int:
        """Tables that nobody has, and no match that was handed over waits for."""
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            beats = await self._store.processes.read_heartbeats()
            self._tables = count_tables(list(beats.values()), await now_ms(self._store.client))
            self._until = now + FRESH_S
        return self._tables - await self._store.jobs.count_waiting()


def count_tables(beats: list[Heartbeat], now_ms: int) -> int:
    """Of all referees that live, taken or free."""
    living = [beat for beat in beats if not beat.has_left and now_ms - beat.beat_ms < REFEREE_SILENT_MS]
    return sum(beat.tables + beat.free for beat in living)
