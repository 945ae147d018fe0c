"""The server is killed in the middle of a ladder, again and again: each match that was finished counts once."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from harness import Fleet, House, ServerProcess, in_memory, server_process, until
from harness.ladder import Rung
from harness.table import Admin

from seatwise.remote import run_async
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server.competition.ratings.openskill_ratings import recompute_ratings
from seatwise_server.embedded import EmbeddedRedis

pytestmark = pytest.mark.asyncio(loop_scope="session")

KILLS = 3
QUIET_S = 60.0
"""Matches that nobody plays on are over after this, with the limits below."""


@asynccontextmanager
async def bots_on(house: House, ladder: str, count: int, address: str = "") -> AsyncIterator[None]:
    """Bots of the SDK, which come back by themselves."""
    wires = [await house.bot() for _ in range(count)]
    own = {"game": "ugo", "address": address or house.address, "queues": [ladder], "max_matches": 3}
    tasks = [asyncio.create_task(run_async("random", token=wire.token, **own)) for wire in wires]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def all_over(house: House) -> list[match_pb2.Match]:
    """The matches when none of them is open."""
    request = match_service_pb2.ListMatchesRequest(page_size=1000)
    async with asyncio.timeout(QUIET_S):
        while True:
            answer = await house.admin.matches.ListMatches(request, metadata=house.admin.metadata)
            if all(match.HasField("end_time") for match in answer.matches):
                return list(answer.matches)
            await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_every_match_that_is_finished_counts_once_whatever_is_killed() -> None:
    async with server_process(log_level="info", where=in_memory()) as (process, house):
        it = Rung(house, "ladders/killed")
        await it.create(2, limits={"free_ms": {"card": 300, "arrange": 300}, "bank_ms": 1, "setup_ms": 2000})
        async with bots_on(house, it.name, 3):
            for kill in range(1, KILLS + 1):
                await it.until_results(3 * kill)
                await process.kill()
                await process.start()
            await it.until_results(3 * KILLS + 3)
        finished = {each.name: each for each in await all_over(house) if not each.void_reason}
        results = await it.results()
        assert sorted(result.match for result in results) == sorted(finished)
        for result in results:
            match = finished[result.match]
            assert (list(result.points), list(result.ranks)) == (
                list(match.result.points), list(match.result.ranks),
            )  # fmt: skip
        shown = await it.standings(len(results))
        assert [(line.bot, line.mu, line.sigma) for line in shown] == [
            (bot, rating.mu, rating.sigma) for bot, rating in recompute_ratings(results).ranked_bots()
        ]


@asynccontextmanager
async def two_lobbies() -> AsyncIterator[tuple[House, list[ServerProcess]]]:
    """A gateway, a referee and two lobbies on one Redis."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory())))
        redis = stack.enter_context(EmbeddedRedis(folder / "redis"))
        ships = Fleet(folder, redis.url)
        stack.push_async_callback(ships.stop)
        gateway = await ships.start("--role", "gateway")
        await ships.start("--role", "referee")
        lobbies = [await ships.start("--role", "lobby") for _ in range(2)]
        house = House(gateway.address, Admin(gateway.address, gateway.token))
        stack.push_async_callback(house.admin.drop)
        stack.push_async_callback(house.drop_all)
        yield house, lobbies


def holds(lobby: ServerProcess) -> bool:
    return any(line["event"] == "ladder_lease_taken" for line in lobby.log)


@pytest.mark.slow
async def test_a_ladder_goes_on_at_another_lobby_when_the_one_that_held_it_is_killed() -> None:
    async with two_lobbies() as (house, lobbies):
        it = Rung(house, "ladders/held")
        await it.create(2)
        await until(lambda: any(map(holds, lobbies)))
        lobbies.sort(key=holds)
        heir, holder = lobbies
        async with bots_on(house, it.name, 2, heir.address):
            await it.until_results(4)
            assert not holds(heir)  # it is the holder that pairs those who attend at the other
            await holder.kill()
            count = len(await it.results())
            results = await it.until_results(count + 4)
            assert holds(heir)
        shown = await it.standings(count + 4)
        assert {line.bot for line in shown} == {bot for result in results for bot in result.bots}
