"""How many more matches the referees can take: bots wait in their queues, not at closed doors."""

from __future__ import annotations

import asyncio

from seatwise_server.store import Heartbeat, Store

FRESH_S = 0.5
"""How old the figure may be."""
SILENT_MS = 5000
"""Who has not beaten for so long before the last beat of all is not reckoned with."""


class Capacity:
    """As one lobby sees it; several may believe in the same place, and then a match waits for its table."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._free = 0
        self._until = 0.0

    async def look(self) -> int:
        """Free tables, less the matches that wait for one."""
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            beats = await self._store.processes.heartbeats()
            self._free = free_tables(list(beats.values())) - await self._store.jobs.untaken()
            self._until = now + FRESH_S
        return self._free

    def take(self) -> None:
        """One of them is taken."""
        self._free -= 1


def free_tables(beats: list[Heartbeat]) -> int:
    """Of all referees that live."""
    newest_ms = max((beat.beat_ms for beat in beats), default=0)
    return sum(beat.free for beat in beats if not beat.has_left and newest_ms - beat.beat_ms < SILENT_MS)
