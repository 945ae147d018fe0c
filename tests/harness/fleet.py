"""Several `seatwise serve` on one Redis: a front (lobby and gateway) and referees that may be killed."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.house import House, in_memory
from harness.process import ServerProcess
from harness.table import Admin, Chair, Table
from harness.websocket import use_websockets
from harness.wire import Attending, Wire
from seatwise.v1 import match_pb2
from seatwise_server.embedded import EmbeddedRedis

FRONT = ("--role", "lobby", "--role", "gateway")
REFEREE = ("--role", "referee")


@dataclass(slots=True)
class Seats:
    """A match whose bots attend at the front and sit wherever its referee is."""

    match: match_pb2.Match
    bots: Sequence[Wire]
    attending: Sequence[Attending]
    chairs: list[Chair]
    address: str
    """Of its referee."""
    subprotocol: str = ""
    """By which its bots come; empty for gRPC."""
    ws_address: str = ""
    """Of its referee."""
    _wires: list[Wire] = field(default_factory=list)

    @property
    def table(self) -> Table:
        """To play it."""
        return Table(self.match, self.chairs)

    async def follow(self, epoch: int, within_s: float) -> float:
        """All go where the offer of this epoch sends them; when the last one had it, on the loop's clock."""
        offers = [await each.offer(self.match.name, epoch, within_s) for each in self.attending]
        at = asyncio.get_running_loop().time()
        self.address, self.ws_address = offers[0].address, offers[0].ws_address
        for chair in self.chairs:
            chair.wire, chair.last = self._wire(chair), None
            await chair.wire.channel.channel_ready()
            await chair.sit()
        return at

    def _wire(self, chair: Chair) -> Wire:
        wire = Wire(self.address, chair.wire.token, chair.wire.bot)
        if self.subprotocol:
            use_websockets(wire, self.ws_address, self.subprotocol)
        self._wires.append(wire)
        return wire

    async def drop(self) -> None:
        """Ends its connections to referees."""
        for wire in self._wires:
            await wire.drop()


class Fleet:
    """A Redis, and processes on it."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.redis_url = redis_url
        self.processes: list[ServerProcess] = []
        self._folder = folder
        self._seats: list[Seats] = []

    async def start(self, *args: str, before: str = "") -> ServerProcess:
        """One more process; `before` is Python that it runs first."""
        data = self._folder / f"p{len(self.processes)}"
        data.mkdir()
        process = ServerProcess(data, "--redis", self.redis_url, "--log-level", "debug", *args)
        process.before = before
        self.processes.append(process)
        await process.start()
        return process

    async def crew(self, referees: int, *args: str) -> None:
        """So many referees are alive."""
        alive = [each for each in self.processes if REFEREE[1] in each.args and each.is_alive]
        for _ in range(referees - len(alive)):
            await self.start(*REFEREE, *args)

    def at(self, address: str) -> ServerProcess:
        """The process that listens there."""
        [found] = [process for process in self.processes if process.address == address]
        return found

    async def seated(self, house: House, seats: int = 2, **limits: Any) -> Seats:
        """A new match, dealt: all sit at its referee."""
        bots = [await house.bot() for _ in range(seats)]
        attending = [await bot.attend() for bot in bots]
        match = await house.admin.create([bot.bot for bot in bots], **limits)
        offers = [await each.offer(match.name) for each in attending]
        chairs = [Chair(bot, match.name, offer.seat) for bot, offer in zip(bots, offers, strict=True)]
        seated = Seats(match, bots, attending, sorted(chairs, key=lambda chair: chair.seat), "")
        seated.subprotocol = house.subprotocol
        self._seats.append(seated)
        await seated.follow(1, 1)
        return seated

    async def stop(self) -> None:
        """All of it."""
        for seats in self._seats:
            await seats.drop()
        await asyncio.gather(*[process.stop() for process in self.processes])


@asynccontextmanager
async def fleet(
    referees: int = 2, *args: str, front: Sequence[str] = FRONT
) -> AsyncIterator[tuple[Fleet, House]]:
    """A front and so many referees; the house is the front."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory())))
        redis = stack.enter_context(EmbeddedRedis(folder / "redis"))
        ships = Fleet(folder, redis.url)
        stack.push_async_callback(ships.stop)
        lobby = await ships.start(*front)
        for _ in range(referees):
            await ships.start(*REFEREE, *args)
        house = House(lobby.address, Admin(lobby.address, lobby.token), lobby.ws_address)
        stack.push_async_callback(house.admin.drop)
        stack.push_async_callback(house.drop_all)
        yield ships, house
