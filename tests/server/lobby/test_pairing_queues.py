"""Queues, first come, first served, with bots that have places for more than one match; on a real Redis, without a lobby."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from harness.free_tables import give_tables
from harness.store_calls import reserve_seat

from seatwise_server.lobby.pairing import Pairing
from seatwise_server.lobby.seating import QUEUES, Seating
from seatwise_server.store import Attendance, Store, keys

LEASE_MS = 60_000
BOTS = ("bots/a/versions/1", "bots/b/versions/1")
QUEUE = "casual-2"


@pytest.fixture
async def lobby(store: Store) -> Pairing:
    """Without house bots."""
    return give_tables(Pairing(store, Seating(store, "fsync"), {}, SimpleNamespace()))  # type: ignore[arg-type]


async def wait(store: Store, most: int, queue: str = QUEUE) -> None:
    """Both bots stand in the queue and attend for this one; they have taken seats before."""
    for bot in BOTS:
        await store.client.call("HSET", keys.bot_no_shows(bot), "taken", most)
        await store.attendances.write_attendance(bot, Attendance("lobby", "first", most, (queue,)), LEASE_MS)
        await store.queues.enter_queue(QUEUE, bot)


async def seats(store: Store) -> list[int]:
    return [len(await store.seats.held_seats(bot)) for bot in BOTS]


async def test_a_bot_that_has_places_left_is_seated_again_before_anything_is_offered(
    store: Store, lobby: Pairing
) -> None:
    await wait(store, most=3)
    waves = [
        await lobby._pair_queue(QUEUES[QUEUE], await store.queues.count_waiting(QUEUE), ()) for _ in range(4)
    ]
    assert waves == [True, True, True, False]
    assert await seats(store) == [3, 3]
    assert await store.queues.count_waiting(QUEUE) == 0


async def test_a_match_by_name_has_its_turn_between_two_of_a_queue(
    store: Store, lobby: Pairing, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[int]] = []

    async def look_at_created(_: object) -> frozenset[str]:
        seen.append(await seats(store))
        return frozenset()

    monkeypatch.setattr(lobby, "_pair_created", look_at_created)
    monkeypatch.setattr(lobby._ladders, "pair_ladders", look_at_created)
    await wait(store, most=2)
    while await lobby._run_pass():
        pass
    assert seen[::2] == seen[1::2] == [[0, 0], [1, 1], [2, 2]]


async def test_a_bot_that_attends_for_other_queues_by_now_does_not_wait_on(
    store: Store, lobby: Pairing
) -> None:
    await wait(store, most=3, queue="casual")
    await lobby._pair_queue(QUEUES[QUEUE], 2, ())
    assert await seats(store) == [1, 1]
    assert await store.queues.count_waiting(QUEUE) == 0


async def test_a_bot_that_has_fewer_places_than_seats_is_missing(store: Store, lobby: Pairing) -> None:
    one, other = BOTS
    assert await lobby._seating.missing_bot(BOTS) == one
    await wait(store, most=2)
    assert await lobby._seating.missing_bot([one, other, other]) is None
    await reserve_seat(store, other, "matches/1", 0)
    assert await lobby._seating.missing_bot([one, other, other]) == other
