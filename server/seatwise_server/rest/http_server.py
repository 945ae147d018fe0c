"""The HTTP port: binds it, serves an application on it in the event loop of everything else, and stops in order."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from errno import EADDRINUSE
from typing import TypeAlias

import structlog
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from seatwise_server.config import HttpSettings
from seatwise_server.limits import BOT_HTTP_STREAMS
from seatwise_server.proxy_networks import ProxyNetworks
from seatwise_server.rest.bot_relay import (
    HTTP_ATTENDANCE_PATH,
    HTTP_PLAY_PATH,
    BotRelays,
    FindReferee,
    add_bot_endpoints,
    wires_to,
)
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.http_protocol import HTTP_IDLE_S, BoundedHttpProtocol, HttpConnections
from seatwise_server.rest.rest_app import new_rest_app, new_url_tree
from seatwise_server.rest.routes import UrlTree
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.services.operations import Operation
from seatwise_server.tls.certificate_reloader import CertificateReloader, new_port_context

# Takes the HTTP port. The process that takes it need not be the one that serves it, so nothing here needs the HTTP libraries.

HTTP_BACKLOG = 512

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class HttpPort:
    """A port that this process has taken."""

    socket: socket.socket
    url: str
    """http://host:port or https://host:port."""

    @property
    def number(self) -> int:
        return int(self.socket.getsockname()[1])


def take_http_port(settings: HttpSettings, *, is_encrypted: bool) -> HttpPort:
    """Take the port, or the socket that another process has taken. Connections wait from now on. Raises OSError."""
    if settings.descriptor is None:
        taken = _take_free_port(settings)
        taken.listen(HTTP_BACKLOG)
    else:
        taken = socket.socket(fileno=settings.descriptor)
    scheme = "https" if is_encrypted else "http"
    return HttpPort(taken, f"{scheme}://{settings.host}:{taken.getsockname()[1]}")


def _take_free_port(settings: HttpSettings) -> socket.socket:
    try:
        return bind_port(settings.host, settings.port)
    except OSError as error:
        if not settings.is_port_default or error.errno != EADDRINUSE:
            raise
        log.warning(
            "http_port_busy", port=settings.port, why="a free one is taken; choose one with --http-port"
        )
        return bind_port(settings.host, 0)


def bind_port(host: str, port: int) -> socket.socket:
    """Take the port of this host, or a free one for 0. Raises OSError if the port is not free."""
    family, kind, protocol, _, where = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    taken = socket.socket(family, kind, protocol)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(where)
    except OSError:
        taken.close()
        raise
    return taken


TLS_HANDSHAKE_S = 10.0
"""A connection that has not finished the handshake of TLS by then is closed."""


class HttpServer:
    """One HTTP port with one application."""

    def __init__(self, app: ASGIApp, most_connections: int, trusted_proxies: Collection[str] = ()) -> None:
        """`trusted_proxies` are addresses or networks of proxies, whose X-Forwarded-For says who calls."""
        proxies = ProxyNetworks(trusted_proxies)
        if trusted_proxies:
            app = _CallersBehindProxies(app, proxies)
        paths_of_bots = (HTTP_ATTENDANCE_PATH, HTTP_PLAY_PATH)
        self.connections = HttpConnections(most_connections, proxies, paths_of_bots)
        self._config = uvicorn.Config(
            app, loop="asyncio", http=BoundedHttpProtocol, ws="none", lifespan="off", log_config=None,
            access_log=False, proxy_headers=False, timeout_keep_alive=int(HTTP_IDLE_S),
        )  # fmt: skip
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def start(self, port: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Begin to answer on a port that `take_http_port` took."""
        # The log lines of uvicorn go to structlog.
        lines = logging.getLogger("uvicorn.error")
        lines.propagate = False
        lines.setLevel(logging.ERROR)
        lines.handlers = [_ToStructlog()]
        loop = asyncio.get_running_loop()
        self._config.load()
        self._set_date()
        self._server = await loop.create_server(
            lambda: BoundedHttpProtocol(self.connections, self._config, self._state, loop),
            sock=port, ssl=tls, backlog=HTTP_BACKLOG,
            ssl_handshake_timeout=TLS_HANDSHAKE_S if tls else None,
        )  # fmt: skip

    async def run_clock(self) -> None:
        """Keep the header Date right. Runs until it is cancelled."""
        while True:
            self._set_date()
            await asyncio.sleep(1.0 - time.time() % 1.0)

    async def stop(self, grace_s: float) -> None:
        """Take no more connections, let open requests finish for so long, and drop what is left."""
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=grace_s)
        for connection in list(self._state.connections):
            connection.transport.abort()
        for task in list(self._state.tasks):
            task.cancel()
        await self._server.wait_closed()

    def _set_date(self) -> None:
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]


class _CallersBehindProxies:
    """Tells the application who calls, and how, where a proxy is between. uvicorn's own compares addresses in another way."""

    def __init__(self, app: ASGIApp, proxies: ProxyNetworks) -> None:
        self._app, self._proxies = app, proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        told: dict[bytes, list[str]] = {b"x-forwarded-for": [], b"x-forwarded-proto": []}
        for name, value in scope["headers"]:
            if name in told:
                told[name].append(value.decode("latin-1").strip())
        address = scope["client"][0] if scope["client"] else ""
        if caller := self._proxies.caller_behind(address, told[b"x-forwarded-for"]):
            scope["client"] = (caller, 0)
        if told[b"x-forwarded-proto"][-1:] in (["http"], ["https"]) and self._proxies.has_address(address):
            scope["scheme"] = told[b"x-forwarded-proto"][-1]
        await self._app(scope, receive, send)


class _ToStructlog(logging.Handler):
    """Passes on what uvicorn logs as an error. Its warnings tell of bytes that are no HTTP: callers are told of these."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, asyncio.CancelledError):
            log.error("http_server_failed", text=record.getMessage().strip(), exc_info=error)


# The HTTP port of a process: settings, application, server and log line put together.

AddPages: TypeAlias = Callable[
    [UrlTree, Sequence[Operation], Authenticator, EventStreams, Callable[[], bool]], None
]
"""Adds the pages for people, which call the operations. The last argument is what /readyz says."""


class RestDoor:
    """Serves operations on an HTTP port, from `start` to `stop`."""

    def __init__(
        self,
        settings: HttpSettings,
        port: HttpPort,
        certificate: CertificateReloader | None,
        find_referee: FindReferee,
        add_pages: AddPages,
    ) -> None:
        """`find_referee` is for bots that ask for a match of which this process knows nothing."""
        self._add_pages = add_pages
        self._find_referee = find_referee
        self._settings = settings
        self._port = port
        self._certificate = certificate
        self._streams = EventStreams()
        self._bot_streams = EventStreams(BOT_HTTP_STREAMS)
        self._server: HttpServer | None = None

    async def start(
        self,
        operations: Sequence[Operation],
        authenticator: Authenticator,
        open_streams: OpenStreams,
        is_ready: Callable[[], bool],
        most_connections: int,
    ) -> None:
        """Begin to answer. `is_ready` is what /readyz says."""
        urls = new_url_tree(operations, authenticator, self._streams, is_ready)
        self._add_pages(urls, operations, authenticator, self._streams, is_ready)
        if self._settings.lobby:
            relays = BotRelays(wires_to(self._settings), self._find_referee, open_streams)
            add_bot_endpoints(urls, relays, authenticator, self._bot_streams)
        app = new_rest_app(urls, self._settings.cors_origins)
        self._server = HttpServer(app, most_connections, self._settings.trusted_proxies)
        tls = new_port_context(self._certificate) if self._certificate else None
        await self._server.start(self._port.socket, tls)

    async def run_clock(self) -> None:
        if self._server:
            await self._server.run_clock()

    async def lacks_room(self) -> bool:
        """Whether the port has no connection left but those that it keeps for bots."""
        return self._server is not None and self._server.connections.is_full

    async def stop(self, grace_s: float) -> None:
        """End open streams with SERVER_STOPPING, let other requests finish for so long, and close the port."""
        for streams in (self._streams, self._bot_streams):
            streams.end_all()
        if self._server:
            await self._server.stop(grace_s)
        else:
            self._port.socket.close()
