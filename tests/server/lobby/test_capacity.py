"""How many more matches fit: those count who live and play such games, and nobody else."""

from __future__ import annotations

from collections.abc import Sequence

from seatwise_server.game_choice import ALL_KINDS, GameKind
from seatwise_server.lobby.seating import Capacity, count_tables, list_living
from seatwise_server.store import Heartbeat, Store
from seatwise_server.timings import REFEREE_SILENT_MS

NOW = 1_000_000
OWN, HOSTED = GameKind


def beat(
    tables: int, free: int, ago_ms: int, *, has_left: bool = False, kinds: Sequence[GameKind] = ALL_KINDS
) -> Heartbeat:
    return Heartbeat(1, "", has_left, tables, free, beat_ms=NOW - ago_ms, kinds=tuple(kinds))


def test_tables_are_those_of_who_lives_taken_or_free() -> None:
    living = [beat(3, 7, 900), beat(5, 0, 100)]
    gone = [beat(1, 9, REFEREE_SILENT_MS), beat(0, 10, 100, has_left=True)]
    assert list_living([*living, *gone], NOW) == living
    assert count_tables(living, ALL_KINDS) == 15


def test_where_the_last_referee_is_dead_there_are_none() -> None:
    assert list_living([beat(0, 10, REFEREE_SILENT_MS)], NOW) == []
    assert count_tables([], ALL_KINDS) == 0


async def test_matches_that_wait_for_a_referee_have_their_tables(store: Store) -> None:
    await store.processes.write_heartbeat("a", "host:1", 2, 8)
    assert await Capacity(store).count_free_tables(OWN) == 10
    for number, kind in enumerate([OWN, OWN, HOSTED]):
        await store.jobs.push_job(f"matches/{number}", kind=kind)
    assert [await Capacity(store).count_free_tables(kind) for kind in GameKind] == [7, 7]


async def test_tables_for_games_from_outside_are_no_room_for_our_own(store: Store) -> None:
    await store.processes.write_heartbeat("a", "host:1", 2, 3, kinds=[OWN])
    await store.processes.write_heartbeat("b", "host:1", 0, 100, kinds=[HOSTED])
    for number in range(5):
        await store.jobs.push_job(f"matches/{number}")
    assert [await Capacity(store).count_free_tables(kind) for kind in GameKind] == [0, 100]
