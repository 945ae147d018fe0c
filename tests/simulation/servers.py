"""A process of the server: the shipped roles, put together as `seatwise_server.app` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from seatwise_server.config import Config
from seatwise_server.play.match_clock import EventLoopLag
from seatwise_server.refusal import Refusal
from seatwise_server.roles import Common, GatewayRole, LobbyRole, RefereeRole, Role
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.store import Flusher, Listeners, Store, new_client
from simulation.clock import Loop
from simulation.redis_host import URL
from simulation.rpc import Listener

ADMIN_TOKEN = "admin.of-the-simulation-and-of-nothing-else"
MOST_TABLES = 200
NEEDS_GRPC = "echo"
"""A task that measures the threads of gRPC, of which a world has none."""


class Server:
    """One incarnation of one process."""

    def __init__(self, loop: Loop, name: str, roles: frozenset[str], address: str) -> None:
        self.loop = loop
        self.name = name
        self.listener = Listener(loop.name, loop)
        self.referee: RefereeRole | None = None
        self.lobby: LobbyRole | None = None
        self.store: Store
        self.flusher: Flusher
        self.is_leaving = False
        self.has_left = False
        self.on_failed: Callable[[str], None] = lambda _: None
        self.new_strength_client: Callable[[Any], Any] | None = None
        """What fits the strengths of ladders, where a world has a ladder."""
        self._config = Config(
            roles=roles, address=address, redis_url=URL, most_tables=MOST_TABLES, house_bots=False
        )
        self._roles: list[Role] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._main = loop.create_task(self._start())

    # Its start

    async def _start(self) -> None:
        client = new_client(URL)
        self.store = Store(client)
        self.flusher = Flusher(client, Listeners(on_up=self._store_came))
        common = self._common()
        self.flusher.start()
        common.lag.start_beat()
        self._open_streams = common.open_streams
        self._roles = list(self._made(common))
        for role in self._roles:
            role.add_services(self.listener.server, self.listener.websockets)  # type: ignore[arg-type]
        for role in self._roles:
            tasks = await role.start()
            if NEEDS_GRPC in tasks:
                tasks.pop(NEEDS_GRPC).close()
            self._spawn(tasks)
        self._spawn({"watch tokens": common.open_streams.watch_tokens()})
        self.listener.is_open = True

    def _common(self) -> Common:
        return Common(
            config=self._config,
            name=self.name,
            listens_on=self._config.address,
            ws_listens_on=self._config.address,
            certificate=None,
            store=self.store,
            flusher=self.flusher,
            authenticator=Authenticator(self.store.credentials, lambda: ADMIN_TOKEN),
            open_streams=OpenStreams(self.store.credentials),
            lag=EventLoopLag(self.loop),
            durability="fsync",
            is_alone=False,
        )

    def _made(self, common: Common) -> list[Role]:
        roles: list[Role] = []
        self.lobby = lobby = LobbyRole(common) if "lobby" in self._config.roles else None
        if lobby and self.new_strength_client:
            lobby.ladders._strength_client = self.new_strength_client(self.store.results)
        if "referee" in self._config.roles:
            self.referee = RefereeRole(common)
            roles.append(self.referee)
        if lobby:
            roles.append(lobby)
        if "gateway" in self._config.roles:
            roles.append(GatewayRole(common, lobby.pairing.wake_pairing if lobby else lambda: None))
        return roles

    def _spawn(self, tasks: dict[str, object]) -> None:
        for name, work in tasks.items():
            task = self.loop.create_task(work, name=name)  # type: ignore[arg-type]
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() and not self.is_leaving:
            self.on_failed(f"{self.name}: {task.get_name()}: {task.exception()!r}")

    def _store_came(self, gap_s: float) -> None:
        for role in self._roles:
            role.store_is_back(gap_s)

    # Its end

    def leave(self, on_left: Callable[[], None]) -> None:
        """Stops in order, as at SIGTERM."""
        if not self.is_leaving and not self.loop.is_dead:
            self.is_leaving = True
            self.loop.create_task(self._leave(on_left))

    async def _leave(self, on_left: Callable[[], None]) -> None:
        for task in [self._main, *self._tasks]:
            task.cancel()
        await asyncio.wait([self._main, *self._tasks])
        for role in self._roles:
            await role.stop()
        if self._roles:
            self._open_streams.end_all(
                Refusal("SERVER_STOPPING", "the server stops; come back, your matches wait")
            )
        await asyncio.sleep(0.5)
        self.listener.close()
        await asyncio.sleep(0.1)
        if self._roles:
            await self.flusher.close(timeout_s=5.0 if self.flusher.healthy else 0.0)
        self.has_left = True
        on_left()
