"""Calls that cost a stranger a few bytes cost the server little memory, and honest bursts are served none the less."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from harness import House, Wire, server_process
from harness.header_bombs import drop_header_bombs

from seatwise.v1 import game_service_pb2
from seatwise_server.rpc.grpc_server import MOST_CALLS_PER_CONNECTION

pytestmark = pytest.mark.asyncio(loop_scope="session")

MB = 2**20
BURST = 8 * MOST_CALLS_PER_CONNECTION


def resident_mb(pid: int) -> float:
    """What the process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / MB


async def peak_during(pid: int, work: asyncio.Task[int]) -> float:
    """The most memory that the process has while this is done, and half a second later."""
    peak = 0.0
    while not work.done():
        await asyncio.wait([work], timeout=0.05)
        peak = max(peak, resident_mb(pid))
    await asyncio.sleep(0.5)  # it works off what it has read
    return max(peak, resident_mb(pid))


@pytest.mark.parametrize(
    ("calls", "elements", "most_mb"), [(60_000, 0, 40), (6_000, 440, 130)], ids=["many calls", "many headers"]
)
@pytest.mark.slow
async def test_calls_that_are_never_completed_take_little_memory(
    calls: int, elements: int, most_mb: int
) -> None:
    """Without the limit they took 170 and 500 MB."""
    async with server_process() as (process, house):
        host, _, port = process.address.rpartition(":")
        before = resident_mb(process.pid)
        flood = asyncio.create_task(drop_header_bombs(host, int(port), calls, elements=elements))
        peak = await peak_during(process.pid, flood)
        assert await flood == calls
        assert peak - before < most_mb
        await house.admin.bots.ListBots(game_service_pb2.ListGamesRequest())


@pytest.mark.slow
async def test_a_burst_on_one_connection_waits_for_its_turn_and_is_served(house: House) -> None:
    wire: Wire = house.wire()
    ask = wire.channel.unary_unary(
        "/seatwise.v1.GameService/ListGames",
        response_deserializer=game_service_pb2.ListGamesResponse.FromString,
    )
    answers = await asyncio.gather(*(ask(b"") for _ in range(BURST)))
    assert all(len(answer.games) == 2 for answer in answers)
