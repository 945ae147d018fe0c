"""One server process: puts the roles together, starts them in order, and stops them in order."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import socket
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import structlog

from seatwise_server.config import Config
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.house import house_bots, run_house_bots
from seatwise_server.lobby.lobby import Lobby
from seatwise_server.lobby.pairing import Pairing
from seatwise_server.lobby.seating import Seating
from seatwise_server.play.delivery import Delivery
from seatwise_server.play.inheritance import Inheritance
from seatwise_server.play.lag import Lag
from seatwise_server.play.presence import Presence
from seatwise_server.play.referee import Place, Referee
from seatwise_server.play.watch import Watch
from seatwise_server.refusal import Refusal
from seatwise_server.rpc.bots import BotDoor
from seatwise_server.rpc.games import GameDoor
from seatwise_server.rpc.keeper import Keeper
from seatwise_server.rpc.lobby import LobbyDoor
from seatwise_server.rpc.matches import MatchDoor
from seatwise_server.rpc.play import PlayDoor
from seatwise_server.rpc.server import Doors
from seatwise_server.store import Flusher, Listeners, Patience, Store, check_server, connect
from seatwise_server.store.tokens import load_or_create_admin_token

GRACE_S = 2.0
"""How long open RPCs have to end when the server stops."""

log = structlog.get_logger()


class StoreLost(Exception):
    """The store has been away for too long; nothing that was acknowledged is lost."""


class PortBusy(Exception):
    """The address to listen on is not to be had."""


@dataclass(slots=True)
class Running:
    """A server that is up."""

    address: str
    """host:port, with the port that was taken."""
    store: Store
    referee: Referee
    lobby: Lobby
    stopped: asyncio.Future[None]
    """Fails when the server cannot go on."""


def embedded_redis(config: Config) -> EmbeddedRedis | None:
    """The private store, started; to be called from the main thread, before gRPC and any event loop."""
    if config.redis_url:
        return None
    embedded = EmbeddedRedis(config.data / "redis")
    embedded.start()
    return embedded


@asynccontextmanager
async def running(config: Config, embedded: EmbeddedRedis | None) -> AsyncIterator[Running]:
    """The server, up and taking bots; on leaving it stops in order."""
    async with AsyncExitStack() as stack:
        server = _Server(config, embedded)
        await server.start(stack)
        yield server.running


class _Server:
    def __init__(self, config: Config, embedded: EmbeddedRedis | None) -> None:
        self._config = config
        self._embedded = embedded
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped: asyncio.Future[None] = self._loop.create_future()

    async def start(self, stack: AsyncExitStack) -> None:
        config = self._config
        client = connect(config.redis_url or self._url())
        stack.push_async_callback(client.aclose)
        facts = await check_server(client, allow_loss=config.allow_loss)
        durability = "fsync" if facts.is_lossless else "loss-allowed"
        store = Store.of(client)
        lag = Lag(self._loop)
        flusher = Flusher.of(
            client,
            Listeners(on_down=self._store_went, on_up=self._store_came, on_lost=self._store_lost),
            Patience(gone_for_good_s=config.gone_for_good_s),
        )
        flusher.start()
        stack.push_async_callback(flusher.close)
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        delivery = Delivery(store.journal, store.matches, store.seats, config.keep_records_s)
        self._referee = Referee(Place(name, "", config.most_tables), store, flusher, lag, delivery)
        seating = Seating(store, durability)
        pairing = Pairing(store, seating, house_bots() if config.house_bots else ())
        self._lobby = Lobby(name, store, pairing)
        keeper = Keeper(store.bots, load_or_create_admin_token(config.admin_token_file))
        self._doors = Doors()
        self._doors.add(
            LobbyDoor(self._lobby, keeper),
            PlayDoor(self._referee, keeper),
            MatchDoor(store, seating, pairing, Watch(store), keeper),
            BotDoor(store, keeper),
            GameDoor(),
        )
        address = await self._listen()
        stack.push_async_callback(self._stop, keeper)
        lag.start()
        stack.callback(lag.stop)
        inheritance = Inheritance(
            name, store, lambda: self._referee.free, self._referee.has, self._referee.open
        )
        presence = Presence(self._referee, store, self._referee.lease)
        await presence.beat_once()
        if self._embedded:
            await inheritance.take_all()
            self._spawn("supervise redis", self._embedded.supervise())
        self._spawn("take jobs", self._referee.take_jobs())
        self._spawn("beat", presence.beat())
        self._spawn("orders", presence.listen())
        self._spawn("inherit", inheritance.run())
        self._spawn("farewells", inheritance.listen())
        self._spawn("watch streams", self._referee.streams.watch())
        self._spawn("watch tokens", keeper.watch())
        self._spawn("lobby beat", self._lobby.beat())
        self._spawn("lobby listen", self._lobby.listen())
        self._spawn("pairing", pairing.run())
        if config.house_bots:
            self._spawn("house bots", run_house_bots(store, address))
        await self._doors.set_ready(True)
        _settle_memory()
        log.info(
            "server_started",
            address=address,
            redis=facts.software,
            version=facts.version,
            durability=durability,
        )
        self.running = Running(address, store, self._referee, self._lobby, self._stopped)

    def _url(self) -> str:
        assert self._embedded is not None
        return self._embedded.url

    async def _listen(self) -> str:
        config = self._config
        try:
            port = self._doors.server.add_insecure_port(f"{config.host}:{config.port}")
        except RuntimeError:
            port = 0
        if port == 0:
            raise PortBusy(
                f"cannot listen on {config.host}:{config.port}: the port is taken, or the host is not this machine; "
                "choose another with --port, or --port 0 for a free one"
            )
        await self._doors.server.start()
        return f"{config.host}:{port}"

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """A task without which the server cannot go on."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() and not self._stopped.done():
            self._stopped.set_exception(task.exception() or RuntimeError(task.get_name()))

    def _store_went(self) -> None:
        log.warning("store_gone")

    def _store_came(self, gap_s: float) -> None:
        log.warning("store_back", gap_s=round(gap_s, 3))
        self._referee.store_is_back(gap_s)

    def _store_lost(self, error: BaseException) -> None:
        if not self._stopped.done():
            message = f"the store has not answered for {self._config.gone_for_good_s:.0f} s: {error}"
            self._stopped.set_exception(StoreLost(message))

    async def _stop(self, keeper: Keeper) -> None:
        """No new matches; those that run wait in the store, with their clocks standing still."""
        await self._doors.set_ready(False)
        await _end(self._tasks)
        await self._referee.stop()
        keeper.end_all(Refusal("SERVER_STOPPING", "the server stops; come back, your matches wait"))
        with suppress(asyncio.CancelledError):
            await self._doors.server.stop(GRACE_S)
        log.info("server_stopped")


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancels until all have ended: up to Python 3.11 `wait_for`, and so redis-py, may swallow a cancellation."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.1)


def _settle_memory() -> None:
    """What is there after start-up stays: keep the collector from walking over it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)
