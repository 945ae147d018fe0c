"""The server is killed in the middle of a ladder, again and again: each match that was finished counts once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from harness import House, in_memory, server_process
from harness.ladder import Rung

from seatwise.remote import run_async
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server.competition.ratings import recompute

pytestmark = pytest.mark.asyncio(loop_scope="session")

KILLS = 3
QUIET_S = 60.0
"""Matches that nobody plays on are over after this, with the limits below."""


@asynccontextmanager
async def bots_on(house: House, ladder: str, count: int) -> AsyncIterator[None]:
    """Bots of the SDK, which come back by themselves."""
    wires = [await house.bot() for _ in range(count)]
    own = {"game": "ugo", "address": house.address, "queues": [ladder], "max_matches": 3}
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
            (bot, rating.mu, rating.sigma) for bot, rating in recompute(results).table()
        ]
