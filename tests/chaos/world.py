"""The processes of a run: a Redis, servers of every role, and bots; each may be harmed, and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from harness.fleet import FRONT, REFEREE
from harness.process import ServerProcess
from harness.table import Admin

from chaos.disks import SmallDisk
from chaos.links import Link
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.store import Store, new_client
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.tokens import load_or_create_admin_token

TESTS = Path(__file__).resolve().parents[1]
AGAIN_S = 0.3
"""Between two tries to start something again."""
BREATH_S = 0.3
"""Acceptances wait a tenth of a second for a message to ride with."""
DRAIN_S = 20.0
"""A bot that was told to stop has finished its matches by then."""
ENOUGH_FOR_COMPETITIONS = 7
"""Of so many bots two wait for a ladder, and those with a name play for a league, too."""
LADDER_ALONE = (0, 2)
"""The numbers of the bots that wait for the ladder and nothing else, where there is one."""


class Victim:
    """A process that may be harmed. All the while somebody looks after it."""

    role = ""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_harmed = False
        self.away: list[tuple[float, float]] = []
        """When it was not itself, on the clock of the histories."""
        self.kills = 0
        """How often it was killed without warning."""
        self.harms = 0
        """How often anything was done to it."""

    def __str__(self) -> str:
        return f"{self.role} {self.number}"

    @property
    @abstractmethod
    def pid(self) -> int:
        """Of the process."""

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """Whether there is a process, be it a stopped one."""

    @abstractmethod
    async def start(self) -> None:
        """Returns when it does its work, however long that takes."""

    @abstractmethod
    async def gone(self) -> None:
        """Returns when the process has ended."""

    async def harm(self, way: str, lasts_s: float) -> None:
        """Kills it, stops it for a while or does something else to it; returns when it does its work again."""
        self.is_harmed, began = True, time.monotonic()
        self.harms += 1
        try:
            await getattr(self, way)(lasts_s)
        finally:
            self.is_harmed = False
            self.away.append((began, time.monotonic()))

    async def kill(self, lasts_s: float) -> None:
        """As by kill -9, and started again."""
        self.kills += 1
        self.signal(signal.SIGKILL)
        await self.gone()
        await asyncio.sleep(lasts_s)
        await self.start()

    async def stop(self, lasts_s: float) -> None:
        """It stands still, and then goes on as if nothing had been."""
        self.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(lasts_s)
        finally:
            self.signal(signal.SIGCONT)

    async def term(self, lasts_s: float) -> None:
        """It ends in order, and is started again; who does not end is killed."""
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(DRAIN_S):
                await self.gone()
        except TimeoutError:
            await self.kill(lasts_s)
            return
        await asyncio.sleep(lasts_s)
        await self.start()

    def signal(self, number: signal.Signals) -> None:
        """To the process."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def end(self) -> None:
        """For good."""
        if self.is_alive:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
            await self.gone()


class HarmedRedis(EmbeddedRedis):
    """An embedded Redis that may be told to sleep."""

    def _write_configuration(self) -> str:
        return super()._write_configuration() + "enable-debug-command local\n"


class Redis(Victim):
    """The one Redis, its append-only file written through always."""

    role = "redis"

    def __init__(self, folder: Path, fault: str = "") -> None:
        super().__init__(0)
        self.server = HarmedRedis(folder)
        self.disk = SmallDisk(folder) if fault == "disk" else None

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return Path(unquote(self.server.url.removeprefix("unix://")))

    async def fill_disk(self, lasts_s: float) -> None:
        """Its disk is full for a while. It ends at the first byte that it cannot write, and is started again."""
        assert self.disk is not None
        self.disk.fill(self.pid)
        try:
            await self.gone()
            self.kills += 1
            await asyncio.sleep(lasts_s)
        finally:
            self.disk.free()
        await self.start()

    async def sleep(self, lasts_s: float) -> None:
        """It answers nobody for a while, though its process runs."""
        client = new_client(self.server.url)
        try:
            with contextlib.suppress(StoreUnavailable):  # the answer comes too late for a client of ours
                await client.call("DEBUG", "SLEEP", f"{lasts_s:.3f}")
        finally:
            await client.close_connections()

    @property
    def pid(self) -> int:
        """See `Victim`."""
        return self.server.pid or 0

    @property
    def is_alive(self) -> bool:
        """See `Victim`."""
        return self.server.pid is not None

    async def start(self) -> None:
        """See `Victim`."""
        self.server.ensure_running()

    async def gone(self) -> None:
        """See `Victim`."""
        while self.is_alive:  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.01)


class Server(Victim):
    """A `seatwise serve`."""

    def __init__(self, number: int, role: str, data: Path, redis: Redis, link: Link | None = None) -> None:
        super().__init__(number)
        self.role = role
        data.mkdir()
        roles = REFEREE if role == "referee" else (*FRONT, "--http-port", "0")
        url = link.url if link else redis.server.url
        self.process = ServerProcess(data, "--redis", url, "--log-level", "info", *roles)
        self._redis = redis
        self._link = link

    @property
    def pid(self) -> int:
        """See `Victim`."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """See `Victim`."""
        return self.process.is_alive

    async def start(self) -> None:
        """See `Victim`. Without its Redis it does not come up, and whoever runs it tries again."""
        while True:
            try:
                await self.process.start()
                return
            except (AssertionError, TimeoutError):
                await self.end()
                await asyncio.sleep(AGAIN_S)

    async def gone(self) -> None:
        """See `Victim`."""
        await self.process.ended(within_s=60)

    async def kill(self, lasts_s: float) -> None:
        """See `Victim`. A referee is killed while Redis holds its breath: what it has acknowledged too early is lost."""
        if self.role == "referee" and not self._redis.is_harmed:
            self._redis.signal(signal.SIGSTOP)
            await asyncio.sleep(BREATH_S)
            self.signal(signal.SIGKILL)
            self._redis.signal(signal.SIGCONT)
        await super().kill(lasts_s)

    async def cut(self, lasts_s: float) -> None:
        """It cannot reach its Redis for a while."""
        assert self._link is not None
        await self._link.cut(lasts_s)

    @property
    def faults(self) -> list[str]:
        """What it logged of its own faults, and what it said that was no log line."""
        lines = (self.process.data / "server.log").read_text().splitlines()
        return [line for line in lines if '"level": "error"' in line or "Traceback" in line]


class Player(Victim):
    """A bot."""

    role = "bot"

    def __init__(self, number: int, folder: Path, address: str, game: str, queues: tuple[str, ...]) -> None:
        super().__init__(number)
        self.game = game
        self.is_named = not queues
        """It plays only matches that name it."""
        self.name = ""
        """Format: bots/{bot}/versions/{version}."""
        self.token = ""
        self.history = folder / f"bot{number}.jsonl"
        self.gateway: Server | None = None
        """The server through which it plays, if it plays over plain HTTP: while that is away, nothing of it reaches its referee."""
        self._log = folder / f"bot{number}.log"
        self._command = [sys.executable, "-m", "chaos.bot", address, game, str(self.history), *queues]
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """See `Victim`."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """See `Victim`."""
        return self._process is not None and self._process.returncode is None

    @property
    def has_moved(self) -> bool:
        """Whether a move of its has been acknowledged."""
        return self.history.exists() and b'"accepted"' in self.history.read_bytes()

    async def start(self) -> None:
        """See `Victim`."""
        env = {**os.environ, "PYTHONPATH": str(TESTS), "SEATWISE_TOKEN": self.token}
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env=env, stdout=log, stderr=log
            )

    async def gone(self) -> None:
        """See `Victim`."""
        assert self._process is not None
        await self._process.wait()


@asynccontextmanager
async def opened(redis: Redis) -> AsyncIterator[Store]:
    """What is in it, for those who look from outside."""
    client = new_client(redis.server.url)
    try:
        yield Store(client)
    finally:
        await client.close_connections()


@dataclass
class World:
    """All of them."""

    folder: Path
    redis: Redis
    links: list[Link] = field(default_factory=list)
    """From each server to its Redis, in a run that is about them."""
    referees: list[Server] = field(default_factory=list)
    fronts: list[Server] = field(default_factory=list)
    bots: list[Player] = field(default_factory=list)
    ladder: str = ""
    """The ladder on which some bots play, if there are enough of them."""
    league: str = ""
    """The league for which bots with a name play every other set of deals."""

    @property
    def victims(self) -> dict[str, list[Any]]:
        """By role."""
        return {"referee": self.referees, "front": self.fronts, "bot": self.bots, "redis": [self.redis]}

    @property
    def all(self) -> list[Victim]:
        """Those who depend on others first."""
        return [*self.bots, *self.fronts, *self.referees, self.redis]

    def admin(self, number: int = 0) -> Admin:
        """The operator, at one of the front doors."""
        process = self.fronts[number % len(self.fronts)].process
        return Admin(process.address, self.fronts[0].process.token)

    async def begun(self) -> None:
        """Returns when every bot has made a move."""
        while not all(bot.has_moved for bot in self.bots):  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(AGAIN_S)

    async def busy(self) -> dict[str, int]:
        """How many matches each referee has, as far as Redis can tell just now."""
        try:
            async with asyncio.timeout(AGAIN_S), opened(self.redis) as store:
                beats = await store.processes.read_heartbeats()
        except (TimeoutError, StoreUnavailable):
            return {}
        at = {beat.address: beat.tables for beat in beats.values()}
        return {str(each): at.get(each.process.address, 0) for each in self.referees}

    @property
    def fallen(self) -> list[Victim]:
        """Those who ended although nobody had harmed them."""
        return [each for each in self.all if not each.is_alive and not each.is_harmed]


@asynccontextmanager
async def world(
    folder: Path, referees: int, fronts: int, games: Sequence[str], fault: str = ""
) -> AsyncIterator[World]:
    """Everything up, and every bot registered; at the end nothing of it is left running.

    `fault` names what the run is about, so that it can be done.
    """
    redis = Redis(folder / "redis", fault)
    made = World(folder, redis)
    try:
        redis.server.start()
        if len(games) >= ENOUGH_FOR_COMPETITIONS:
            made.ladder, made.league = "ladders/chaos", "leagues/chaos"
        if fault == "links":
            await _start_links(made, referees + fronts)
        await _start_servers(made, referees, fronts)
        await _start_bots(made, games)
        yield made
    finally:
        await asyncio.gather(*[victim.end() for victim in made.all if victim is not redis])
        for link in made.links:
            link.close()
        redis.signal(signal.SIGCONT)
        redis.server.stop()
        if redis.disk is not None:
            redis.disk.unmount()


async def _start_links(made: World, number: int) -> None:
    made.links += [Link(made.redis.socket) for _ in range(number)]
    for link in made.links:
        await link.start()


async def _start_servers(made: World, referees: int, fronts: int) -> None:
    redis, links = made.redis, iter(made.links)
    made.fronts += [
        Server(each, "front", made.folder / f"front{each}", redis, next(links, None))
        for each in range(fronts)
    ]
    made.referees += [
        Server(each, "referee", made.folder / f"referee{each}", redis, next(links, None))
        for each in range(referees)
    ]
    tokens = [front.process.data / "admin.token" for front in made.fronts]
    load_or_create_admin_token(tokens[0])
    for each in tokens[1:]:  # all have one operator
        each.hardlink_to(tokens[0])
    await asyncio.gather(*[server.start() for server in (*made.fronts, *made.referees)])


def _queues_of(number: int, ladder: str) -> tuple[str, ...]:
    """Two bots wait for the ladder alone: those that wait for both play in the queue whenever nothing is harmed."""
    if ladder and number in LADDER_ALONE:
        return (ladder,)
    return ("casual-2", *filter(None, (ladder,)))


async def _start_bots(made: World, games: Sequence[str]) -> None:
    """Of UGO! every other one waits in a queue, all others play what they are named for; each is at a front door.

    Of four bots one comes by WebSocket, and one by plain HTTP.
    """
    admin = made.admin()
    if made.ladder:
        await admin.create_ladder(made.ladder)
    for number, game in enumerate(games):
        server = made.fronts[number % len(made.fronts)]
        front = server.process
        ways = (front.address, front.address, front.ws_address, f"rest+{front.http_address}")
        address = ways[number % len(ways)]
        queues = () if number % 2 or game != "ugo" else _queues_of(number, made.ladder)
        bot = Player(number, made.folder, address, game, queues)
        bot.gateway = server if address.startswith("rest+") else None
        wire = await admin.register(f"chaotic-{number}")
        bot.name, bot.token = wire.bot, wire.token
        await wire.drop()
        made.bots.append(bot)
        await bot.start()
    if made.league:
        named = [bot.name for bot in made.bots if bot.is_named and bot.game == "ugo"]
        await admin.create_league(made.league, named)
    await admin.drop()
