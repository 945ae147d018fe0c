"""The number of matches that the referees can still take, so that bots wait in their queues until there is a table."""

from __future__ import annotations

import asyncio

from seatwise_server.store import Heartbeat, Store, now_ms
from seatwise_server.timings import REFEREE_SILENT_MS

FRESH_S = 0.5
"""The longest age of the facts about referees, in seconds. The waiting jobs are counted again each time."""


class Capacity:
    """The capacity as one lobby sees it: all tables of all live referees, less all unfinished jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tables = 0
        self._until = 0.0

    async def count_free_tables(self) -> int:
        """Returns the number of tables without a match, less the matches that wait for a referee."""
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            beats = await self._store.processes.read_heartbeats()
            self._tables = count_tables(list(beats.values()), await now_ms(self._store.client))
            self._until = now + FRESH_S
        return self._tables - await self._store.jobs.count_unfinished()


def count_tables(beats: list[Heartbeat], now_ms: int) -> int:
    """Returns the number of tables, used or free, of all live referees."""
    living = [beat for beat in beats if not beat.has_left and now_ms - beat.beat_ms < REFEREE_SILENT_MS]
    return sum(beat.tables + beat.free for beat in living)
