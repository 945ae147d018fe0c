"""A referee dies, stands still or is stopped, and no match is lost: real processes, real signals."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest
import pytest_asyncio
from harness import House, Seats, endings, fleet
from harness.websocket import PROTO

from seatwise_server.timings import REFEREE_LEASE_S

pytestmark = pytest.mark.asyncio(loop_scope="session")

THINK_MS = 20_000
PATIENT = {"free_ms": {"card": THINK_MS, "arrange": THINK_MS}, "bank_ms": 1}
"""Nobody runs out of time while a takeover takes its time."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def all_ships():
    async with fleet(referees=0) as (processes, house):
        yield processes, house


@pytest_asyncio.fixture(loop_scope="session")
async def ships(all_ships):
    """A front and two referees, whatever the test before did to them."""
    await all_ships[0].crew(2)
    return all_ships


@pytest.fixture(params=["", PROTO], ids=["grpc", "websocket"])
def by_both(request, ships):
    """The same ships, for bots of each transport in turn."""
    ships[1].subprotocol = request.param
    yield ships
    ships[1].subprotocol = ""


def now() -> float:
    return asyncio.get_running_loop().time()


def overtaken(record: dict) -> list[int]:
    """The epochs of those who took the match over."""
    return [entry["epoch"] for entry in record["entries"] if entry["kind"] == "taken_over"]


async def one_move(seats: Seats) -> str:
    """Whoever is asked moves, and is told that the move stands; its request id."""
    asked, _ = await seats.table.asked()
    request_id = await asked.move()
    while request_id not in asked.accepted:
        await asked.receive()
    return request_id


async def finish(seats: Seats, house: House) -> dict:
    """All play it out, none the worse for what happened; the record."""
    await seats.table.play_out()
    match = await house.admin.over(seats.match.name)
    assert endings(match) == ["COMPLETED"] * len(seats.chairs)
    assert all(chair.last.time.strikes == 0 for chair in seats.chairs)
    return json.loads(await house.admin.record(seats.match.name))


async def test_after_a_kill_another_asks_again_in_full_within_the_lease_and_a_second(by_both) -> None:
    processes, house = by_both
    seats = await processes.seated(house, **PATIENT)
    await one_move(seats)
    dead = seats.address
    await processes.at(dead).kill()
    killed = now()
    assert await seats.follow(2, REFEREE_LEASE_S + 3) - killed <= REFEREE_LEASE_S + 1
    assert seats.address != dead
    asked, _ = await seats.table.asked("")
    assert asked.last.time.move_ms > THINK_MS - 500
    record = await finish(seats, house)
    assert overtaken(record) == [2]
    assert sum("play" in entry["move"] for entry in record["entries"] if entry["kind"] == "move") == 20


async def test_a_zombie_says_nothing_of_a_match_that_another_has(by_both) -> None:
    processes, house = by_both
    seats = await processes.seated(house, **PATIENT)
    asked, others = await seats.table.asked()
    zombie, streams = processes.at(seats.address), [chair.stream for chair in seats.chairs]
    await asyncio.sleep(0.3)  # what was on its way has come
    before = [len(stream.received) for stream in streams]
    zombie.signal(signal.SIGSTOP)
    try:
        await asked.move()
        await others[0].submit(None, prompt=99)
        await seats.follow(2, REFEREE_LEASE_S + 3)
    finally:
        zombie.signal(signal.SIGCONT)
    record = await finish(seats, house)
    assert overtaken(record) == [2]
    how = [await stream.end() for stream in streams]
    assert {it.reason for it in how} <= {"MATCH_MOVED", ""}
    said = [it for stream, many in zip(streams, before, strict=True) for it in stream.received[many:]]
    assert [it for it in said if it.match] == []


@pytest.mark.slow
async def test_a_referee_that_is_stopped_in_order_hands_its_matches_over_at_once(by_both) -> None:
    processes, house = by_both
    seats = await processes.seated(house, **PATIENT)
    await one_move(seats)
    stopped = processes.at(seats.address)
    stopped.signal(signal.SIGTERM)
    began = now()
    assert await seats.follow(2, 3) - began < 1
    assert await stopped.ended() == 0
    record = await finish(seats, house)
    assert overtaken(record) == [2]
