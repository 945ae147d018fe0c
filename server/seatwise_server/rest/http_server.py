"""The HTTP port: binds it, serves an application on it in the event loop of everything else, and stops in order."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Collection
from email.utils import formatdate

import structlog
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from seatwise_server.proxy_networks import ProxyNetworks
from seatwise_server.rest.http_port import HTTP_BACKLOG
from seatwise_server.rest.http_protocol import HTTP_IDLE_S, BoundedHttpProtocol, OpenConnections

TLS_HANDSHAKE_S = 10.0
"""A connection that has not finished the handshake of TLS by then is closed."""

log = structlog.get_logger()


class HttpServer:
    """One HTTP port with one application."""

    def __init__(self, app: ASGIApp, most_connections: int, trusted_proxies: Collection[str] = ()) -> None:
        """`trusted_proxies` are addresses or networks of proxies, whose X-Forwarded-For says who calls."""
        proxies = ProxyNetworks(trusted_proxies)
        if trusted_proxies:
            app = _CallersBehindProxies(app, proxies)
        self._connections = OpenConnections(most_connections, proxies)
        self._config = uvicorn.Config(
            app, loop="asyncio", http=BoundedHttpProtocol, ws="none", lifespan="off", log_config=None,
            access_log=False, proxy_headers=False, timeout_keep_alive=int(HTTP_IDLE_S),
        )  # fmt: skip
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def start(self, port: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Begins to answer on a port that `take_http_port` took."""
        _send_log_lines_to_structlog()
        loop = asyncio.get_running_loop()
        self._config.load()
        self._set_date()
        self._server = await loop.create_server(
            lambda: BoundedHttpProtocol(self._connections, self._config, self._state, loop),
            sock=port, ssl=tls, backlog=HTTP_BACKLOG,
            ssl_handshake_timeout=TLS_HANDSHAKE_S if tls else None,
        )  # fmt: skip

    async def run_clock(self) -> None:
        """Keeps the header Date right. Runs until it is cancelled."""
        while True:
            self._set_date()
            await asyncio.sleep(1.0 - time.time() % 1.0)

    async def stop(self, grace_s: float) -> None:
        """Takes no more connections, lets open requests finish for so long, and drops what is left."""
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
        """As the standard library asks."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, asyncio.CancelledError):
            log.error("http_server_failed", text=record.getMessage().strip(), exc_info=error)


def _send_log_lines_to_structlog() -> None:
    lines = logging.getLogger("uvicorn.error")
    lines.propagate = False
    lines.setLevel(logging.ERROR)
    lines.handlers = [_ToStructlog()]
