"""The number of matches that the referees can still take, so that bots wait in their queues until there is a table."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from seatwise_server.game_choice import ALL_KINDS, GameKind
from seatwise_server.store import Heartbeat, Store, Tables, now_ms
from seatwise_server.timings import REFEREE_SILENT_MS

FRESH_S = 0.5
"""The longest age of the facts about referees, in seconds. The waiting jobs are counted again each time."""


class Capacity:
    """The capacity as one lobby sees it: all tables of live referees that play such games, less their unfinished jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._referees: list[Heartbeat] = []
        self._until = 0.0

    async def count_free_tables(self, kind: GameKind) -> int:
        """Returns the number of tables for games of this kind without a match, less the matches that wait for a referee."""
        tables = await self.find_tables(kind)
        return tables.count - await self._store.jobs.count_unfinished(tables.kinds)

    async def find_tables(self, kind: GameKind) -> Tables:
        """Returns the tables for games of this kind, used or free."""
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            beats = await self._store.processes.read_heartbeats()
            self._referees = list_living(list(beats.values()), await now_ms(self._store.client))
            self._until = now + FRESH_S
        kinds = kinds_beside(kind, self._referees)
        return Tables(count_tables(self._referees, kinds), kinds)


def list_living(beats: Sequence[Heartbeat], now_ms: int) -> list[Heartbeat]:
    """Returns the heartbeats of referees that live; `now_ms` is the time on Redis's clock."""
    return [beat for beat in beats if not beat.has_left and now_ms - beat.beat_ms < REFEREE_SILENT_MS]


def kinds_beside(kind: GameKind, referees: Sequence[Heartbeat]) -> Sequence[GameKind]:
    """Returns the kinds of games whose matches share tables with this kind: all, as soon as one referee plays all."""
    return ALL_KINDS if any(len(beat.kinds) > 1 for beat in referees) else [kind]


def count_tables(referees: Sequence[Heartbeat], kinds: Sequence[GameKind]) -> int:
    """Returns the number of tables, used or free, of the referees that play one of these kinds of games."""
    return sum(beat.tables + beat.free for beat in referees if set(kinds) & set(beat.kinds))
