"""Created matches with short clocks, one after the other for each pair of bots."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Self

import grpc
from harness.table import Admin

from chaos.world import World
from seatwise.v1 import match_pb2

AGAIN_S = 0.3
LIMITS = {
    "ugo": {"free_ms": {"card": 4000, "arrange": 4000}, "bank_ms": 1, "grace_ms": 50},
    "ubongo": {"free_ms": {"build": 20_000}, "grace_ms": 50},
}
"""By game. In UGO! less than a takeover takes, so that whoever is charged for one runs out of time."""
PLAYERS_OF_SETS = 2
MATCHES_OF_SETS = 2
ROUNDS = {"ugo": (4, 8), "ubongo": (1, 3)}
OURS = ("INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED")
"""Codes that no repeat will better."""


class Hosts:
    """As long as this lasts there are matches."""

    def __init__(self, world: World) -> None:
        self.matches: set[str] = set()
        """All that were created."""
        self._world = world
        self._is_closing = False
        self._tasks: list[asyncio.Task[None]] = []
        self._chance = random.Random(len(world.bots))
        self._in_sets = Counter[tuple[str, ...]]()
        """How many matches of sets these bots have had."""

    async def __aenter__(self) -> Self:
        tables = [(game, bots) for game in LIMITS for bots in self._tables(game)]
        self._tasks = [asyncio.create_task(self._host(number, *each)) for number, each in enumerate(tables)]
        return self

    def _tables(self, game: str) -> list[tuple[str, ...]]:
        named = [bot.name for bot in self._world.bots if bot.is_named and bot.game == game]
        return [*itertools.combinations(named, 2), *itertools.combinations(named, 3)]

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def finish(self) -> None:
        """Returns when all that was created is over."""
        self._is_closing = True
        await asyncio.gather(*self._tasks)

    async def _host(self, number: int, game: str, bots: tuple[str, ...]) -> None:
        admin = self._world.admin(number)
        for each in itertools.count():
            if self._is_closing:
                break
            name = await self._created(admin, game, bots, f"chaos-{number}-{each}")
            self.matches.add(name)
            await _until_over(admin, name)
        await admin.drop()

    def _place_in_set(self, bots: tuple[str, ...]) -> match_pb2.DealSet:
        """The next place in the sets of deals of these bots, which are of two matches each."""
        number = self._in_sets[bots]
        self._in_sets[bots] += 1
        name = "-".join(bot.split("/")[1] for bot in bots)
        return match_pb2.DealSet(
            name=f"sets/{name}-{number // MATCHES_OF_SETS}",
            number=number % MATCHES_OF_SETS + 1,
            size=MATCHES_OF_SETS,
        )

    async def _created(self, admin: Admin, game: str, bots: tuple[str, ...], request_id: str) -> str:
        """The name of a new match; however often it has to be asked for, there is one."""
        rounds = self._chance.randint(*ROUNDS[game])
        create = partial(admin.create, bots, game=game, rounds=rounds, request_id=request_id, **LIMITS[game])
        if self._world.league and game == "ugo" and len(bots) == PLAYERS_OF_SETS:
            rounds = ROUNDS[game][0]  # the same in all matches of a set
            league = self._world.league if self._in_sets[bots] // MATCHES_OF_SETS % 2 else ""
            create = partial(create, rounds=rounds, league=league, deal_set=self._place_in_set(bots))
        name: str = (await _until_answered(create)).name
        return name


async def _until_over(admin: Admin, name: str) -> None:
    """Asks again and again: nobody may watch a match of a set of deals before all of them are over."""
    while not (await _until_answered(partial(admin.match, name))).HasField("end_time"):  # noqa: ASYNC110
        await asyncio.sleep(AGAIN_S)


async def _until_answered(ask: Callable[[], Awaitable[Any]]) -> Any:
    """What is answered at last: the front door may be away, its Redis too."""
    while True:
        try:
            return await ask()
        except grpc.aio.AioRpcError as error:
            if error.code().name in OURS:
                raise
        except TimeoutError:
            pass
        await asyncio.sleep(AGAIN_S)
