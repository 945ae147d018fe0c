"""How many more matches fit: those count who live, and nobody else."""

from __future__ import annotations

from seatwise_server.lobby.capacity import Capacity, count_tables
from seatwise_server.store import Heartbeat, Store
from seatwise_server.timings import REFEREE_SILENT_MS

NOW = 1_000_000


def beat(tables: int, free: int, ago_ms: int, *, has_left: bool = False) -> Heartbeat:
    return Heartbeat(1, "", has_left, tables, free, beat_ms=NOW - ago_ms)


def test_tables_are_those_of_who_lives_taken_or_free():
    living = [beat(3, 7, 900), beat(5, 0, 100)]
    gone = [beat(1, 9, REFEREE_SILENT_MS), beat(0, 10, 100, has_left=True)]
    assert count_tables([*living, *gone], NOW) == 15


def test_where_the_last_referee_is_dead_there_are_none():
    assert count_tables([beat(0, 10, REFEREE_SILENT_MS)], NOW) == 0
    assert count_tables([], NOW) == 0


async def test_matches_that_wait_for_a_referee_have_their_tables(store: Store):
    await store.processes.write_heartbeat("a", "host:1", 2, 8)
    assert await Capacity(store).count_free_tables() == 10
    for number in range(3):
        await store.jobs.push_job(f"matches/{number}")
    assert await Capacity(store).count_free_tables() == 7
