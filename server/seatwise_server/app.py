"""One server process: puts the roles together, starts them in order, and stops them in order."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import structlog

from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.config import Config
from seatwise_server.descriptors import connections_for_others
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.lobby.lobby import Lobby
from seatwise_server.metrics import Depths, MetricsPage, served
from seatwise_server.play.lag import EventLoopLag
from seatwise_server.play.referee import Referee
from seatwise_server.refusal import Refusal
from seatwise_server.roles import Common, GatewayRole, LobbyRole, RefereeRole, Role, Tasks
from seatwise_server.rpc.grpc_server import GrpcServer
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.store import AppendTimeouts, Flusher, Listeners, Store, check_server, connect
from seatwise_server.store.tokens import load_or_create_admin_token
from seatwise_server.tls.certificate_reloader import CertificateReloader
from seatwise_server.tls.self_signed import ensure_self_signed

FLUSH_S = 5.0
GRACE_S = 2.0
"""How long open RPCs have to end when the server stops."""
HEALTH_S = 0.3

log = structlog.get_logger()


class StoreLost(Exception):
    """The store has been away for too long; nothing that was acknowledged is lost."""


class PortBusy(Exception):
    """The address to listen on is not to be had."""


@dataclass(slots=True)
class Running:
    """A server that is up."""

    address: str
    """host:port, with the port that was taken; with TLS https://host:port."""
    pin: str
    """Fingerprint of the key; empty without TLS."""
    store: Store
    stopped: asyncio.Future[None]
    """Fails when the server cannot go on."""
    referee: Referee | None
    lobby: Lobby | None


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
        self._roles: list[Role] = []
        self._stopped: asyncio.Future[None] = self._loop.create_future()

    async def start(self, stack: AsyncExitStack) -> None:
        config, self._stack = self._config, stack
        client = connect(config.redis_url or self._url())
        stack.push_async_callback(client.close_connections)
        if self._embedded:  # it may die while we start
            self._spawn_all({"supervise redis": self._embedded.supervise()})
            stack.push_async_callback(cancel_until_ended, self._tasks)
        facts = await check_server(client, allow_loss=config.allow_loss, wait_replicas=config.wait_replicas)
        self._certificate = _certificate(config)
        self._grpc = GrpcServer(connections_for_others())
        listeners = Listeners(on_down=self._store_went, on_up=self._store_came, on_lost=self._store_lost)
        patience = AppendTimeouts(gone_for_good_s=config.gone_for_good_s)
        self._flusher = Flusher.of(client, listeners, patience, facts.wait)
        common = self._new_common(Store.of(client), self._bind_port(), facts.durability)
        self._flusher.start()
        stack.push_async_callback(self._close_flusher)
        stack.push_async_callback(self._stop_in_order, common.open_streams)
        common.lag.start_beat()
        stack.callback(common.lag.stop_beat)
        await self._open_roles(common)
        _settle_memory()
        log.info(
            "server_started",
            address=common.with_scheme(common.listens_on),
            roles=sorted(config.roles),
            durability=common.durability,
            **facts.summary,
        )

    def _new_common(self, store: Store, listens_on: str, durability: str) -> Common:
        return Common(
            config=self._config,
            name=f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
            listens_on=listens_on,
            certificate=self._certificate,
            store=store,
            flusher=self._flusher,
            authenticator=Authenticator(store.bots, _admin_token(self._config)),
            open_streams=OpenStreams(store.bots),
            lag=EventLoopLag(self._loop),
            durability=durability,
            is_alone=self._embedded is not None,
        )

    async def _open_roles(self, common: Common) -> None:
        """All roles: first their doors are there, then they are made ready, then bots may come."""
        roles = self._config.roles
        lobby = LobbyRole(common) if "lobby" in roles else None
        referee = RefereeRole(common) if "referee" in roles else None
        wake = lobby.pairing.wake_pairing if lobby else _wake_nobody
        gateway = GatewayRole(common, wake) if "gateway" in roles else None
        self._roles = [role for role in (lobby, referee, gateway) if role]
        for role in self._roles:
            role.add_services(self._grpc)
        for role in self._roles:
            self._spawn_all(await role.start())
        await self._grpc.start()
        if self._certificate:
            self._spawn_all({"watch certificate": self._certificate.watch()})
        self._spawn_all({"watch tokens": common.open_streams.watch_tokens(), "health": self._watch_health()})
        self._serve_metrics(common)
        self._tell_health()
        self.running = Running(
            common.with_scheme(common.listens_on),
            self._certificate.identity.pin if self._certificate else "",
            common.store,
            self._stopped,
            referee.referee if referee else None,
            lobby.lobby if lobby else None,
        )

    def _serve_metrics(self, common: Common) -> None:
        config = self._config
        if config.metrics_port is None:
            return
        depths = Depths(common.store)
        page = MetricsPage(lambda: self._gauges(common), depths, lambda: common.lag.stalled_s)
        try:
            port = self._stack.enter_context(served(page, config.metrics_host, config.metrics_port))
        except OSError as error:
            where = f"{config.metrics_host}:{config.metrics_port}"
            raise PortBusy(
                f"cannot serve metrics on {where}: {error}; choose another --metrics-port"
            ) from None
        self._spawn_all({"depths": depths.watch_depths()})
        log.info("metrics_served", address=f"{config.metrics_host}:{port}", path="/metrics")

    def _gauges(self, common: Common) -> dict[str, float]:
        """Read by another thread, while the loop runs."""
        lag_s = common.lag.longest_s
        found = {"store_up": float(self._flusher.healthy), "loop_lag_seconds": lag_s}
        if self._certificate:
            found["tls_expiry_timestamp_seconds"] = self._certificate.identity.expires.timestamp()
        for role in self._roles:
            found |= role.gauges()
        return found

    def _url(self) -> str:
        if self._embedded is None:
            raise ValueError("no Redis is named, and there is no embedded one")
        return self._embedded.url

    def _bind_port(self) -> str:
        """host:port where this process listens, or will in a moment."""
        config = self._config
        credentials = self._certificate.server_credentials() if self._certificate else None
        port = self._grpc.bind(f"{config.host}:{config.port}", credentials)
        if port == 0:
            raise PortBusy(
                f"cannot listen on {config.host}:{config.port}: the port is taken, or the host is not this machine; "
                "choose another with --port, or --port 0 for a free one"
            )
        if config.health_port is not None and not self._grpc.bind_health(
            f"{config.host}:{config.health_port}"
        ):
            where = f"{config.host}:{config.health_port}"
            raise PortBusy(f"cannot answer health checks on {where}: choose another --health-port")
        return f"{config.host}:{port}"

    def _spawn_all(self, tasks: Tasks) -> None:
        """Tasks without any of which the server cannot go on."""
        for name, work in tasks.items():
            task = asyncio.create_task(work, name=name)
            task.add_done_callback(self._on_task_end)
            self._tasks.append(task)

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() and not self._stopped.done():
            self._stopped.set_exception(task.exception() or RuntimeError(task.get_name()))

    async def _watch_health(self) -> None:
        """Ready is who has a store that answers, and free tables. Runs until cancelled."""
        while True:
            await asyncio.sleep(HEALTH_S)
            self._tell_health()

    def _tell_health(self) -> None:
        is_full = any(role.is_full for role in self._roles)
        is_able = all(role.is_able for role in self._roles)
        self._grpc.set_ready(self._flusher.healthy, is_full=is_full, is_able=is_able)

    async def _close_flusher(self) -> None:
        """What is queued is still written, if there is a store to write it."""
        await self._flusher.close(timeout_s=FLUSH_S if self._flusher.healthy else 0.0)

    def _store_went(self) -> None:
        log.warning("store_gone")

    def _store_came(self, gap_s: float) -> None:
        log.warning("store_back", gap_s=round(gap_s, 3))
        for role in self._roles:
            role.store_is_back(gap_s)

    def _store_lost(self, error: BaseException) -> None:
        if not self._stopped.done():
            why = str(error) or "it is silent"
            message = f"the store has not answered for {self._config.gone_for_good_s:g} s: {why}"
            self._stopped.set_exception(StoreLost(message))

    async def _stop_in_order(self, open_streams: OpenStreams) -> None:
        """No new matches; those that run go to other referees, or wait with their clocks standing still."""
        await cancel_until_ended(self._tasks)
        self._grpc.set_ready(False)
        for role in self._roles:
            await role.stop()
        open_streams.end_all(Refusal("SERVER_STOPPING", "the server stops; come back, your matches wait"))
        with suppress(asyncio.CancelledError):
            await self._grpc.stop(GRACE_S)
        log.info("server_stopped")


def _certificate(config: Config) -> CertificateReloader | None:
    if config.tls is None:
        return None
    renew = partial(ensure_self_signed, config.tls, config.hosts) if config.is_tls_auto else None
    return CertificateReloader(config.tls, renew)


def _wake_nobody() -> None:
    """There is no lobby in this process; those elsewhere look by themselves."""


def _admin_token(config: Config) -> str:
    """Only a gateway has something for admins to do."""
    return load_or_create_admin_token(config.admin_token_file) if "gateway" in config.roles else ""


def _settle_memory() -> None:
    """What is there after start-up stays: keep the collector from walking over it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)
