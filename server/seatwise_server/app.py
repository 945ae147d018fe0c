"""One server process: it creates the roles, starts them in order, and stops them in order."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from errno import EADDRINUSE, EADDRNOTAVAIL
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from seatwise.child_process import ORPHAN_END_S, resident_bytes
from seatwise_server.background_tasks import BackgroundTasks, cancel_until_ended
from seatwise_server.config import Config, HttpSettings, address_from_here
from seatwise_server.counts import COUNTS
from seatwise_server.descriptors import ConnectionRoom, connections_for_others, free_descriptor, lack_room
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.lobby.lobby import Lobby
from seatwise_server.memory import MemoryWatch
from seatwise_server.metrics import Depths, MetricsPage, serving_metrics
from seatwise_server.play.match_clock import EventLoopLag
from seatwise_server.play.no_shows import FaultWatch
from seatwise_server.play.referee import Referee
from seatwise_server.read_process import ReadProcess
from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_server import HttpPort, bind_port, take_http_port
from seatwise_server.roles import Common, GatewayRole, LobbyRole, RefereeRole, Role, Tasks, link_of_bots
from seatwise_server.rpc.grpc_echo import GrpcEcho
from seatwise_server.rpc.grpc_server import GrpcServer
from seatwise_server.rpc.read_forwarder import ReadForwarder
from seatwise_server.services.authentication import Authenticator, TokenUses
from seatwise_server.services.guest_seats import GuestSeats
from seatwise_server.services.id_tokens import IdTokens, IssuerKeys
from seatwise_server.services.matches import LivingReferee
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.store import (
    AppendTimeouts,
    Flusher,
    Listeners,
    RedisClient,
    Store,
    check_server,
    check_settings,
    new_client,
)
from seatwise_server.store.errors import StoreRefused, StoreUnavailable
from seatwise_server.store.tokens import AdminTokenFile
from seatwise_server.tls.certificate_reloader import CertificateReloader, ServerContexts
from seatwise_server.ws.websocket_server import WebSocketServer

if TYPE_CHECKING:
    from seatwise_server.rest.http_server import RestDoor

FLUSH_S = 5.0
RPC_END_S = 2.0
"""The time that open RPCs have to end when the server stops, in seconds."""
HEALTH_S = 0.3
PORT_WAIT_S = ORPHAN_END_S + 1.0
"""How long a start waits for its ports: the processes of a server that was killed may hold them for some seconds."""
PORT_CHECK_S = 0.1
REDIS_LOOK_S = 60.0
"""How often the settings of Redis are checked, and what was kept for long enough is removed, in seconds."""

log = structlog.get_logger()


class StoreLost(Exception):
    """The store has not answered for too long, so the server stops; nothing that was acknowledged is lost."""


class PortBusy(Exception):
    """The server cannot listen on an address; the text names it and says what to do."""


@dataclass(slots=True)
class Running:
    """A server that runs."""

    address: str
    """host:port, with the port that was bound; with TLS https://host:port."""
    pin: str
    """The fingerprint of the key; empty without TLS."""
    store: Store
    stopped: asyncio.Future[None]
    """Gets an exception when the server cannot continue."""
    referee: Referee | None
    lobby: Lobby | None
    reads: ReadProcess | None = None
    """The process that answers reads without a token."""
    ws_address: str = ""
    """ws://host:port or wss://host:port; empty without that port."""
    http_address: str = ""
    """http://host:port or https://host:port; empty without that port."""
    websockets: WebSocketServer | None = None


def embedded_redis(config: Config) -> EmbeddedRedis | None:
    """Start the private store, or return None if the configuration names a Redis.

    Call it from the main thread, before gRPC and before any event loop. Raises EmbeddedRedisError.
    """
    if config.redis_url:
        return None
    embedded = EmbeddedRedis(config.data / "redis")
    embedded.start()
    return embedded


@asynccontextmanager
async def running(
    config: Config, embedded: EmbeddedRedis | None, is_more_ready: Callable[[], bool] = lambda: True
) -> AsyncIterator[Running]:
    """Run a server inside this block: it is ready when the block begins, and stops in order when it ends.

    Raises PortBusy if it cannot listen on an address, and TlsError for a certificate that cannot be used.
    """
    async with AsyncExitStack() as stack:
        server = _Server(config, embedded, is_more_ready)
        await server.start(stack)
        yield server.running


class _Server:
    def __init__(
        self, config: Config, embedded: EmbeddedRedis | None, is_more_ready: Callable[[], bool]
    ) -> None:
        self._config = config
        self._embedded = embedded
        self._is_more_ready = is_more_ready
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._ends = BackgroundTasks()
        self._roles: list[Role] = []
        self._reads: ReadProcess | None = None
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._memory = MemoryWatch(config.max_memory)

    async def start(self, stack: AsyncExitStack) -> None:
        """Start all parts in order; `stack` stops them in the reverse order."""
        config, self._stack = self._config, stack
        await _wait_for_ports(config)
        client = self._client = self._open_client()
        facts = await check_server(client, allow_loss=config.allow_loss, wait_replicas=config.wait_replicas)
        self._certificate = _load_certificate(config)
        port = _take_http_port(config)
        self._http_number = port.number if port else 0
        self._create_grpc()
        listeners = Listeners(on_down=self._store_went, on_up=self._store_came, on_lost=self._store_lost)
        patience = AppendTimeouts(gone_for_good_s=config.gone_for_good_s)
        self._flusher = Flusher(client, listeners, patience, facts.wait)
        self._websockets = self._new_websockets()
        store = Store(client)
        self._token_uses = TokenUses(store.credentials)
        common = self._new_common(store, self._bind_port(), facts.durability)
        self._create_http(common, port)
        self._start_writing(common)
        await self._open_roles(common, port.url if port else "")
        # The objects that exist now stay, and scanning them takes time. A scan of 50,000 new ones would stop all matches for 50 ms.
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 250, 50)
        if self._reads:
            self._reads.start()
        (log.info if self._config.socket is None else log.debug)(
            "server_started",
            address=self.running.address,
            ws_address=self.running.ws_address,
            http_address=self.running.http_address,
            roles=sorted(self._config.roles),
            durability=common.durability,
            **facts.summary,
        )

    def _open_client(self) -> RedisClient:
        """Return the client for Redis, and supervise the embedded Redis, which may die while the server starts."""
        client = new_client(self._config.redis_url or self._embedded_url())
        self._stack.push_async_callback(client.close_connections)
        if self._embedded:
            self._spawn_all({"supervise redis": self._embedded.supervise()})
            self._stack.push_async_callback(cancel_until_ended, self._tasks)
        return client

    def _create_grpc(self) -> None:
        config = self._config
        self._forwarder = ReadForwarder() if config.has_read_process else None
        doors = 1 if config.ws_port is None else 2
        most = self._most_connections = connections_for_others() // doors
        logs_calls = config.socket is None
        self._grpc = GrpcServer(most, self._forwarder, logs_calls=logs_calls, proxies=config.proxies)

    def _create_http(self, common: Common, port: HttpPort | None) -> None:
        """Create the read process, which serves HTTP then, or the REST door of this process."""
        self._rest: RestDoor | None = None
        config = self._config
        http = _with_guest_sockets(common, _with_lobby(common))
        if self._forwarder:
            url = config.redis_url or self._embedded_url()
            config = replace(config, redis_url=url, http=http)
            on_shortage = partial(self._note_shortage, common.lag, is_own=True)
            self._reads = ReadProcess(config, self._forwarder, on_shortage, port.socket if port else None)
        elif http and port:
            self._rest = _new_rest_door(http, port, self._certificate, common.store)

    def _start_writing(self, common: Common) -> None:
        """Start the writer of journals, and the beat that measures stalls."""
        self._flusher.start()
        self._stack.push_async_callback(self._close_flusher)
        self._stack.push_async_callback(self._stop_in_order, common.open_streams)
        common.lag.start_beat()
        self._stack.callback(common.lag.stop_beat)

    def _new_common(self, store: Store, listens_on: str, durability: str) -> Common:
        read_admin_token = _admin_token_reader(self._config)
        return Common(
            config=self._config,
            name=self._config.process_name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
            listens_on=listens_on,
            ws_listens_on=self._bind_websockets(),
            certificate=self._certificate,
            store=store,
            flusher=self._flusher,
            authenticator=Authenticator(
                store.credentials, read_admin_token, self._token_uses, _id_tokens_of(self._config, store)
            ),
            open_streams=OpenStreams(store.credentials, read_admin_token),
            lag=EventLoopLag(self._loop),
            durability=durability,
            is_alone=self._embedded is not None,
        )

    async def _open_roles(self, common: Common, http_address: str) -> None:
        """Start all roles: adds their services, then starts their tasks, and opens the port last."""
        roles = self._config.roles
        referee = RefereeRole(common) if "referee" in roles else None
        lobby = LobbyRole(common, referee.referee if referee else None) if "lobby" in roles else None
        wake = lobby.pairing.wake_pairing if lobby else lambda: None  # those elsewhere find it by themselves
        gateway = GatewayRole(common, wake) if "gateway" in roles else None
        if lobby and common.config.guests:
            operations = (gateway or GatewayRole(common, wake)).operations
            lobby.guests = GuestSeats(common.store, operations, common.config.guests, self._loop.time)
        self._roles = [role for role in (lobby, referee, gateway) if role]
        for role in self._roles:
            role.add_services(self._grpc, self._websockets)
        for role in self._roles:
            self._spawn_all(await role.start())
        await self._grpc.start()
        if echo := _new_echo(referee, lobby):
            self._spawn_all({"echo": echo.run_echo()})
        if self._websockets:
            accepting, watching = self._websockets.accept_connections(), self._websockets.watch_connections()
            self._spawn_all({"accept websockets": accepting, "watch websockets": watching})
        if gateway:
            await self._start_rest(common, gateway)
        self._start_watches(common)
        self._serve_metrics(common)
        self._report_health()
        self.running = Running(
            common.with_scheme(common.listens_on),
            self._certificate.identity.pin if self._certificate else "",
            common.store,
            self._stopped,
            referee.referee if referee else None,
            lobby.lobby if lobby else None,
            self._reads,
            common.as_websocket(common.ws_listens_on),
            http_address,
            self._websockets,
        )

    async def _start_rest(self, common: Common, gateway: GatewayRole) -> None:
        if self._rest:
            most = connections_for_others() // 8
            await self._rest.start(
                gateway.operations, common.authenticator, common.open_streams, self._is_ready, most
            )
            room = ConnectionRoom("http", self._rest.lacks_room, _count_http_shortage)
            self._spawn_all({"http clock": self._rest.run_clock(), "watch http room": room.watch_room()})

    def _start_watches(self, common: Common) -> None:
        """Start the tasks that every process has, whatever its roles."""
        if self._certificate:
            self._spawn_all({"watch certificate": self._certificate.watch_files()})
        room = self._new_room(common)
        self._spawn_all({
            "watch tokens": common.open_streams.watch_tokens(),
            "write token uses": self._token_uses.watch_uses(),
            "watch memory": self._memory.watch_memory(),
            "watch faults": FaultWatch(common.store, lambda: room.is_short, common.lag.broke_links).watch_faults(),
            "watch room": room.watch_room(),
            "health": self._watch_health(),
        })  # fmt: skip
        if self._config.socket is None:  # the process for reads leaves it to its parent
            self._spawn_all({"watch redis": self._watch_redis(common.store)})

    def _new_room(self, common: Common) -> ConnectionRoom:
        """Return the watch over the ports for bots."""
        listening = [common.listens_on, common.ws_listens_on] if self._config.socket is None else []
        ports = [urlsplit(f"//{address_from_here(each)}") for each in listening if each]

        found = [(each.hostname or "localhost", each.port or 0) for each in ports]
        on_shortage = partial(self._note_shortage, common.lag)
        return ConnectionRoom("bots", lambda: lack_room(self._most_connections, found), on_shortage)

    def _note_shortage(self, lag: EventLoopLag, ms: int, *, is_own: bool = False) -> None:
        """In the last `ms` no bot could connect here, or by HTTP."""
        COUNTS.connections_short_s["bots"] += ms / 1000
        lag.note_shortage()
        if self.running.referee:
            self.running.referee.on_shortage(ms, is_own=is_own or free_descriptor() is None)

    def _serve_metrics(self, common: Common) -> None:
        config = self._config
        if config.metrics_port is None:
            return
        depths = Depths(common.store)
        page = MetricsPage(lambda: self._read_gauges(common), depths, lambda: common.lag.stalled_s)
        try:
            port = self._stack.enter_context(serving_metrics(page, config.metrics_host, config.metrics_port))
        except OSError as error:
            where = f"{config.metrics_host}:{config.metrics_port}"
            why = f"cannot serve metrics on {where}: {error}; choose another --metrics-port"
            raise PortBusy(why) from None
        self._spawn_all({"depths": depths.watch_depths()})
        log.info("metrics_served", address=f"{config.metrics_host}:{port}", path="/metrics")

    def _read_gauges(self, common: Common) -> dict[str, float]:
        """Return the gauges for the metrics page. Called by another thread while the loop runs, so it only reads."""
        lag_s = common.lag.longest_s
        found = {"store_up": float(self._flusher.healthy), "loop_lag_seconds": lag_s}
        found |= {"memory_bytes": resident_bytes(), "memory_limit_bytes": self._memory.limit}
        if self._certificate:
            found["tls_expiry_timestamp_seconds"] = self._certificate.identity.expires.timestamp()
        for role in self._roles:
            found |= role.gauges()
        return found

    def _embedded_url(self) -> str:
        if self._embedded is None:
            raise ValueError("no Redis URL is set, and there is no embedded Redis")
        return self._embedded.url

    def _bind_port(self) -> str:
        """Bind the ports, and return host:port of the one for bots. It answers after `GrpcServer.start`."""
        config = self._config
        if config.socket:
            if not self._grpc.bind(f"unix:{config.socket}", None):
                raise PortBusy(f"cannot listen on {config.socket}")
            return f"unix:{config.socket}"
        credentials = self._certificate.server_credentials() if self._certificate else None
        port = self._grpc.bind(f"{config.host}:{config.port}", credentials)
        if port == 0:
            raise PortBusy(
                f"cannot listen on {config.host}:{config.port}: the port is taken, or the host is not this machine; "
                "choose another with --port, or --port 0 for a free one"
            )
        where = f"{config.host}:{config.health_port}"
        if config.health_port is not None and not self._grpc.bind_health(where):
            raise PortBusy(f"cannot answer health checks on {where}: choose another --health-port")
        return f"{config.host}:{port}"

    def _new_websockets(self) -> WebSocketServer | None:
        config = self._config
        if config.ws_port is None or not config.roles & {"lobby", "referee"}:
            return None
        contexts = ServerContexts(self._certificate) if self._certificate else None
        server = WebSocketServer(connections_for_others() // 2, contexts, config.ws_origins, config.proxies)
        server.page_port = self._http_number if config.guests else None
        return server

    def _bind_websockets(self) -> str:
        """Bind the port for WebSockets, and return host:port; empty if the server has no such port."""
        config = self._config
        if self._websockets is None or config.ws_port is None:
            return ""
        host = config.ws_host or config.host
        try:
            return f"{host}:{self._websockets.bind(host, config.ws_port)}"
        except OSError as error:
            if config.is_ws_port_default and error.errno == EADDRINUSE:
                why = "a free one is taken; choose one with --ws-port"
                log.warning("ws_port_busy", port=config.ws_port, why=why)
                return f"{host}:{self._websockets.bind(host, 0)}"
            where = f"{host}:{config.ws_port}"
            why = f"cannot take WebSockets on {where}: {error.strerror}; choose another with --ws-port, or --no-ws for none"
            raise PortBusy(why) from None

    def _spawn_all(self, tasks: Tasks) -> None:
        """Start tasks that the server cannot do without: it stops when one of them fails."""
        for name, work in tasks.items():
            task = asyncio.create_task(work, name=name)
            task.add_done_callback(self._on_task_end)
            self._tasks.append(task)

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            self._ends.start_task(self._end_with(error))

    async def _end_with(self, error: BaseException) -> None:
        """Stop the server because of an error; or because of its cause, if that is a setting of Redis."""
        try:
            await check_settings(self._client, allow_loss=self._config.allow_loss)
        except StoreRefused as refused:  # keys that were evicted may fail any task
            error = refused
        if not self._stopped.done():
            self._stopped.set_exception(error)

    async def _watch_redis(self, store: Store) -> None:
        """Look every minute at what may change in Redis while the server runs. Raises StoreRefused; runs until cancelled."""
        while True:
            with suppress(StoreUnavailable):
                await store.keeping.remove_due()
            await asyncio.sleep(REDIS_LOOK_S)
            await check_settings(store.client, allow_loss=self._config.allow_loss)

    async def _watch_health(self) -> None:
        """Update the health status: ready means that the store answers and tables are free. Runs until cancelled."""
        while True:
            await asyncio.sleep(HEALTH_S)
            self._report_health()

    def _is_ready(self) -> bool:
        """Return whether the store answers, and every role can work and has room."""
        is_free = all(role.is_able and not role.is_full for role in self._roles)
        return self._flusher.healthy and is_free and self._is_more_ready()

    def _report_health(self) -> None:
        is_full = any(role.is_full for role in self._roles)
        is_able = all(role.is_able for role in self._roles)
        self._grpc.set_ready(self._flusher.healthy, is_full=is_full, is_able=is_able)
        if self._reads:
            self._reads.report_ready(self._is_ready())

    async def _close_flusher(self) -> None:
        """Write what is still queued, if the store answers."""
        await self._flusher.close(timeout_s=FLUSH_S if self._flusher.healthy else 0.0)

    def _store_went(self) -> None:
        log.warning("redis_unreachable")

    def _store_came(self, gap_s: float) -> None:
        log.warning("redis_reachable_again", gap_s=round(gap_s, 3))
        COUNTS.count_fault("STORE")
        for role in self._roles:
            role.store_is_back(gap_s)

    def _store_lost(self, error: BaseException) -> None:
        if not self._stopped.done():
            why = str(error) or "it does not answer"
            message = f"the store has not answered for {self._config.gone_for_good_s:g} s: {why}"
            self._stopped.set_exception(StoreLost(message))

    async def _stop_in_order(self, open_streams: OpenStreams) -> None:
        """Take no new matches.

        Other referees take over the running ones; without another referee their clocks stand still.
        """
        await cancel_until_ended(self._tasks)
        self._grpc.set_ready(False)
        for role in self._roles:
            await role.stop()
        open_streams.end_all(Refusal("SERVER_STOPPING", "the server stops; come back, your matches wait"))
        with suppress(asyncio.CancelledError):
            stopping = [self._grpc.stop(RPC_END_S)]
            stopping += [door.stop(RPC_END_S) for door in (self._websockets, self._rest) if door]
            if self._reads:
                stopping.append(self._reads.stop())
            await asyncio.gather(*stopping)
        (log.info if self._config.socket is None else log.debug)("server_stopped")


async def _wait_for_ports(config: Config) -> None:
    """Wait until the ports of this process are free, for at most `PORT_WAIT_S`; binding them says what is wrong after that."""
    ends = asyncio.get_running_loop().time() + PORT_WAIT_S
    wanted = [(config.host, config.port)] if config.socket is None else []
    wanted += [(config.ws_host or config.host, config.ws_port or 0)]
    wanted += [(config.http.host, config.http.port)] if config.http and config.http.descriptor is None else []
    for host, port in wanted:
        while port and _is_port_taken(host, port) and asyncio.get_running_loop().time() < ends:
            log.debug("port_awaited", host=host, port=port)
            await asyncio.sleep(PORT_CHECK_S)


def _is_port_taken(host: str, port: int) -> bool:
    try:
        bind_port(host, port).close()
    except OSError as error:
        return error.errno == EADDRINUSE
    return False


def _take_http_port(config: Config) -> HttpPort | None:
    """Take the HTTP port, if this process has one. Raises `PortBusy`."""
    http = config.http
    if http is None or "gateway" not in config.roles:
        return None
    try:
        return take_http_port(http, is_encrypted=config.tls is not None)
    except OSError as error:
        where = f"{http.host}:{http.port}"
        another = "an address of this machine" if error.errno == EADDRNOTAVAIL else "another --http-port"
        why = f"cannot serve HTTP on {where}: {error.strerror}; choose {another}, or --no-http"
        raise PortBusy(why) from None


def _with_lobby(common: Common) -> HttpSettings | None:
    """The settings of the HTTP port, with the lobby of this process for bots over HTTP, unless another is named."""
    http = common.config.http
    if http is None or http.lobby or "lobby" not in common.config.roles:
        return http
    link = link_of_bots(common)
    return replace(http, lobby=link.address, lobby_pin=link.tls_pin or "", is_lobby_insecure=link.insecure)


def _with_guest_sockets(common: Common, http: HttpSettings | None) -> HttpSettings | None:
    """The settings of the HTTP port, with the WebSocket port of this process for guests, unless another is named."""
    if http is None or not http.guests or http.guest_sockets:
        return http
    config = common.config
    port = common.ws_listens_on.rpartition(":")[2]
    sockets = common.as_websocket(config.ws_address or (f":{port}" if port else ""))
    return replace(http, guest_sockets=sockets, has_other_sockets=not common.is_alone)


def _new_rest_door(
    settings: HttpSettings, port: HttpPort, certificate: CertificateReloader | None, store: Store
) -> RestDoor:
    # A process that serves no HTTP does not wait for the libraries of these.
    from seatwise_server.pages.page_routes import add_pages
    from seatwise_server.rest.http_server import RestDoor

    add_own_pages = partial(add_pages, settings=settings, store=store)
    return RestDoor(settings, port, certificate, LivingReferee(store).find_address, add_own_pages)


def _load_certificate(config: Config) -> CertificateReloader | None:
    if config.tls is None:
        return None
    if not config.is_tls_auto:
        return CertificateReloader(config.tls)
    from seatwise_server.tls.made_certificates import ensure_self_signed

    return CertificateReloader(config.tls, partial(ensure_self_signed, config.tls, config.hosts))


def _new_echo(referee_role: RefereeRole | None, lobby_role: LobbyRole | None) -> GrpcEcho | None:
    """Return the echo of a process that bots stream to. It is needed while bots play here through gRPC, and is rare while any may."""
    measured = referee_role.referee if referee_role else lobby_role
    if measured is None:
        return None
    referee = referee_role.referee if referee_role else None
    attending = lobby_role.lobby if lobby_role else ()
    tables = referee.tables if referee else ()
    return GrpcEcho(
        measured.transport_lag,
        lambda: len(tables) > 0 and referee is not None and referee.streams.has_writers,
        lambda: len(attending) > 0 or len(tables) > 0,
    )


def _id_tokens_of(config: Config, store: Store) -> IdTokens | None:
    if not config.oidc_issuer:
        return None
    keys = IssuerKeys(config.oidc_issuer)
    return IdTokens(config.oidc_issuer, config.oidc_audience, keys, store.owners.read_pseudonym_secret)


def _admin_token_reader(config: Config) -> Callable[[], str]:
    """Return a reader of the admin token. Only a gateway has methods for admins, so other roles get an empty one."""
    return AdminTokenFile(config.admin_token_file).read_token if "gateway" in config.roles else str


def _count_http_shortage(ms: int) -> None:
    """Count it, and no more: bots have connections of their own there."""
    COUNTS.connections_short_s["http"] += ms / 1000
