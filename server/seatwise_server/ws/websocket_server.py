"""One WebSocket port of a process: who may connect, TLS, the upgrade, and the end of connections."""

from __future__ import annotations

import asyncio
import base64
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import structlog
from picows import WSUpgradeRequest, WSUpgradeResponse, WSUpgradeResponseWithListener
from picows.picows import WSAutoPingStrategy, WSProtocol  # type: ignore[attr-defined]

from seatwise_server.background_tasks import BackgroundTasks
from seatwise_server.limits import SOCKETS, Places
from seatwise_server.proxy_networks import ProxyNetworks
from seatwise_server.refusal import Refusal, write_error_body
from seatwise_server.streams import StreamArrival, note_arrival_of_stream
from seatwise_server.tls.certificate_reloader import ServerContexts
from seatwise_server.ws.bot_socket import LARGEST_MESSAGE, BotSocket
from seatwise_server.ws.message_formats import FORMATS, JSON_FORMAT, PROTO_FORMAT, MessageFormat

MOST_BAD_TOKENS = 100
"""Connections of one address with a bad token within `BAD_TOKENS_S`. With more the address is hung up on until the time is over."""
BAD_TOKENS_S = 60.0


class BadTokens:
    """The addresses that guess tokens."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._counted: Counter[str] = Counter()
        self._counted_from = now()

    def note_bad_token(self, address: str) -> None:
        """A connection of this address was refused for its token."""
        self._start_next_span()
        self._counted[address] += 1

    def has_guessed(self, address: str) -> bool:
        """Whether this address has sent so many that it is hung up on."""
        self._start_next_span()
        return self._counted[address] >= MOST_BAD_TOKENS

    def _start_next_span(self) -> None:
        if self._now() - self._counted_from >= BAD_TOKENS_S:
            self._counted.clear()
            self._counted_from = self._now()


def new_socket_places(most: int, proxies: Collection[str] = ()) -> Places:
    """Return the places of sockets. No single machine, nor a proxy, has more than half of them."""
    return Places(SOCKETS, most, ProxyNetworks(proxies), max(1, most // 2))


# Checks the HTTP request that opens a WebSocket: its path, its subprotocol, and the page that it comes from.

ATTEND_PATH = "/v1/attend"
PLAY_PATH = "/v1/play"
WEBSOCKET_VERSION = "13"
"""The only one, of RFC 6455."""
_USUAL_PORTS = (80, 443)
KEY_BYTES = 16
"""Of a Sec-WebSocket-Key."""


class Upgrade(NamedTuple):
    """An upgrade that may be done."""

    path: str
    format: MessageFormat
    authorization: str | None
    """The header of that name."""


class UpgradeRules(NamedTuple):
    """Which upgrades a door allows."""

    paths: Collection[str]
    """Those of the roles of this process."""
    origins: Collection[str]
    """Origins of pages besides the door's own, as in https://example.org."""
    page_port: int | None = None
    """The port of pages at the same host that may connect too, because guests play from them; 0 for any port there."""


def check_upgrade(target: str, headers: Mapping[str, str], rules: UpgradeRules) -> Upgrade:
    """Return the upgrade that the request asks for. Raises `Refusal` if it may not be done."""
    path, has_query, query = target.partition("?")
    if has_query:
        raise Refusal("INVALID_ARGUMENT", _query_fault(query))
    if path not in rules.paths:
        there = " and ".join(sorted(rules.paths))
        raise Refusal("NOT_FOUND", f"there is no WebSocket at {path[:80]!r}; this process has {there}")
    _check_origin(headers.get("Origin"), headers.get("Host", ""), rules)
    wanted = _missing_header(headers)
    if wanted:
        raise Refusal("INVALID_ARGUMENT", f"this URL is for WebSockets only; send the header {wanted}")
    return Upgrade(
        path, _choose_format(headers.get("Sec-WebSocket-Protocol", "")), headers.get("Authorization")
    )


def _query_fault(query: str) -> str:
    if "token" in query.lower() or "authorization" in query.lower():
        return (
            "a token in a URL ends up in logs: have this one rotated, and send it in the header Authorization: Bearer <token>, "
            'or as the first message, {"token": "..."}'
        )
    return "this URL takes no query"


def _missing_header(headers: Mapping[str, str]) -> str:
    """Return the header that RFC 6455, section 4.2.1, wants and the request does not have; empty if all are there."""
    if headers.get("Upgrade", "").lower() != "websocket":
        return "Upgrade: websocket"
    if "upgrade" not in [each.strip() for each in headers.get("Connection", "").lower().split(",")]:
        return "Connection: Upgrade"
    if headers.get("Sec-WebSocket-Version") != WEBSOCKET_VERSION:
        return f"Sec-WebSocket-Version: {WEBSOCKET_VERSION}"
    return "" if _is_key(headers.get("Sec-WebSocket-Key", "")) else "Sec-WebSocket-Key: <16 bytes in base64>"


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == KEY_BYTES
    except ValueError:
        return False


def _check_origin(origin: str | None, host: str, rules: UpgradeRules) -> None:
    """Programs send no origin; a browser sends that of the page, which must be one that the operator knows."""
    if origin is None or origin in rules.origins:
        return
    if not host or not _is_own_page(_host_of(origin) or "", host.lower(), rules.page_port):
        why = f"pages of {origin[:80]!r} may not connect here; its operator can allow it: --ws-origin"
        raise Refusal("NOT_ALLOWED", why)


def _is_own_page(page: str, host: str, page_port: int | None) -> bool:
    """Whether a page at host:port `page` belongs to the server at `host`."""
    if page == host or page_port is None:
        return page == host
    name = _name_of(page)
    if name != _name_of(host):
        return False
    # A browser leaves out a port that is usual for the scheme of the page.
    return page_port == 0 or page == f"{name}:{page_port}" or (page_port in _USUAL_PORTS and page == name)


def _name_of(host: str) -> str:
    """Return a host without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _choose_format(offered: str) -> MessageFormat:
    names = [name.strip() for name in offered.split(",")]
    for name in names:
        if name in FORMATS:
            return FORMATS[name]
    why = f"name a subprotocol in Sec-WebSocket-Protocol: {JSON_FORMAT} or {PROTO_FORMAT}"
    raise Refusal("INVALID_ARGUMENT", why)


UPGRADE_S = 10.0
"""A connection that has not been upgraded by then is hung up on, as at the gRPC port. TLS may take as long before."""
READ_BUFFER = 32 * 1024
"""Bytes of a connection that may wait in the kernel. All whole frames in it are read in one turn of the loop."""
WRITE_BUFFER = 64 * 1024
"""Bytes that may wait there for a peer that does not read; as many again wait in the process before it is blocked."""
FIRST_BUFFER = 2 * 1024
"""Bytes of the first buffer of a connection; it grows."""
IDLE_S = 10.0
"""A peer that is silent for so long is asked whether it is there, ..."""
LOST_S = 15.0
"""... and one that is silent for so long is gone."""
WATCH_S = 2.5
ACCEPT_RETRY_S = 0.1
BACKLOG = 1024

log = structlog.get_logger()

_picows_log = logging.Logger(
    "seatwise.picows", logging.CRITICAL + 1
)  # it writes a line for each bad byte of a peer
_picows_log.propagate = False


class SocketHandler(Protocol):
    """Serves the sockets of one path."""

    async def serve_socket(self, socket: BotSocket, upgrade: Upgrade, peer: str) -> None:
        """Serve one socket, from its upgrade to its end."""


class WebSocketServer:
    """A port with the paths of the roles that run here."""

    def __init__(
        self,
        most_connections: int,
        contexts: ServerContexts | None = None,
        origins: Collection[str] = (),
        proxies: Collection[str] = (),
    ) -> None:
        """`origins` are those of web pages that may connect; `proxies` are addresses or networks of proxies."""
        self._contexts = contexts
        self._origins = frozenset(origins)
        self.page_port: int | None = None
        """See `UpgradeRules`."""
        self._handlers: dict[str, SocketHandler] = {}
        self._listener: socket.socket | None = None
        self._connections = BackgroundTasks()
        self._sockets: dict[BotSocket, None] = {}
        """Those that are upgraded."""
        self._loop = asyncio.get_running_loop()
        self._places = new_socket_places(most_connections, proxies)
        self._bad_tokens = BadTokens(self._loop.time)

    def add_handler(self, path: str, handler: SocketHandler) -> None:
        """Serve the sockets of a path."""
        self._handlers[path] = handler

    def bind(self, host: str, port: int) -> int:
        """Listen there, and return the port. Raises OSError if the port is not free."""
        host = host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        is_dual = host == "::" and socket.has_dualstack_ipv6()  # as gRPC and HTTP listen there
        self._listener = socket.create_server(
            (host, port), family=family, backlog=BACKLOG, dualstack_ipv6=is_dual
        )
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, READ_BUFFER)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WRITE_BUFFER)
        self._listener.setblocking(False)
        return int(self._listener.getsockname()[1])

    async def accept_connections(self) -> None:
        """Accept connections, and serve each. Runs until cancelled."""
        assert self._listener is not None
        while True:
            try:
                connection, address = await self._loop.sock_accept(self._listener)
            except OSError:  # the peer has gone again, or descriptors are short
                await asyncio.sleep(ACCEPT_RETRY_S)
                continue
            is_suspect = self._bad_tokens.has_guessed(address[0])
            if self._places.find_refusal(address[0], is_suspect=is_suspect) is None:
                arrival = note_arrival_of_stream()
                self._connections.start_task(self._serve_connection(connection, address, arrival))
            else:
                connection.close()
            await asyncio.sleep(0)  # others have their turn even when many connect

    async def watch_connections(self) -> None:
        """Close connections whose peers do not answer pings any more. Runs until cancelled."""
        while True:
            await asyncio.sleep(WATCH_S)
            now = self._loop.time()
            for each in list(self._sockets):
                _check_peer(each, now)

    async def stop(self, grace_s: float) -> None:
        """Wait that long for open connections to end, and close the others."""
        if self._listener is not None:
            self._listener.close()
        await self._connections.wait_for_all(grace_s)
        await self._connections.cancel_all()

    async def _serve_connection(
        self, connection: socket.socket, peer: tuple[Any, ...], arrival: StreamArrival
    ) -> None:
        address, port = peer[:2]
        with self._places.hold_place(address):
            upgraded: list[tuple[BotSocket, Upgrade]] = []
            try:
                protocol = await self._connect(connection, upgraded, arrival)
            except (OSError, ssl.SSLError, TimeoutError, asyncio.IncompleteReadError):
                connection.close()
                return
            try:
                if upgraded:
                    await self._serve_socket(*upgraded[0], f"{address}:{port}")
                    if upgraded[0][0].has_bad_token:
                        self._bad_tokens.note_bad_token(address)
                await protocol.transport.wait_disconnected()
            finally:
                protocol.transport.disconnect(graceful=False)

    async def _connect(
        self, connection: socket.socket, upgraded: list[tuple[BotSocket, Upgrade]], arrival: StreamArrival
    ) -> Any:
        """Return the connection's protocol once it was upgraded, refused or hung up on."""

        def choose_listener(request: WSUpgradeRequest) -> BotSocket | WSUpgradeResponseWithListener:
            upgrade, answer = self._answer_request(request, arrival)
            if upgrade is not None:
                upgraded.append((answer.listener, upgrade))
            return answer

        context = self._contexts.current_context() if self._contexts else None
        patience = {"ssl_handshake_timeout": UPGRADE_S, "ssl_shutdown_timeout": 1.0} if context else {}
        _, protocol = await self._loop.connect_accepted_socket(
            lambda: _new_protocol(choose_listener), connection, ssl=context, **patience
        )
        await protocol.wait_until_handshake_complete()
        return protocol

    def _answer_request(
        self, request: WSUpgradeRequest, arrival: StreamArrival
    ) -> tuple[Upgrade | None, WSUpgradeResponseWithListener]:
        """Return the upgrade, if it may be done, and the answer to the request."""
        rules = UpgradeRules(self._handlers.keys(), self._origins, self.page_port)
        try:
            target = request.path.decode("ascii", "replace")
            upgrade = check_upgrade(target, request.headers, rules)
        except Refusal as refusal:
            return None, WSUpgradeResponseWithListener(_refuse_upgrade(refusal), None)
        request.headers["Connection"] = "Upgrade"  # picows refuses the "keep-alive, Upgrade" of Firefox
        named = {"Sec-WebSocket-Protocol": upgrade.format.name}
        response = WSUpgradeResponse.create_101_response(named)
        return upgrade, WSUpgradeResponseWithListener(response, BotSocket(upgrade.format, arrival))

    async def _serve_socket(self, socket: BotSocket, upgrade: Upgrade, peer: str) -> None:
        self._sockets[socket] = None
        try:
            await self._handlers[upgrade.path].serve_socket(socket, upgrade, peer)
        finally:
            del self._sockets[socket]


def _new_protocol(choose_listener: Callable[[WSUpgradeRequest], Any]) -> Any:
    """Make what `picows.ws_create_server` makes for each connection.

    That function accepts by itself, and so can neither count connections that have not been upgraded, nor change its
    certificate.
    """
    return WSProtocol(
        None, None, False, choose_listener, _picows_log,
        True,  # disconnect_on_exception
        UPGRADE_S,
        False, IDLE_S, IDLE_S, WSAutoPingStrategy.PING_WHEN_IDLE,  # pings are ours: a task for each costs too much
        False,  # pongs are ours too: picows answers whether or not they are read
        LARGEST_MESSAGE, None, FIRST_BUFFER,
    )  # fmt: skip


def _refuse_upgrade(refusal: Refusal) -> WSUpgradeResponse:
    headers = {
        "Content-Type": "application/json", "X-Content-Type-Options": "nosniff",
        "Sec-WebSocket-Version": WEBSOCKET_VERSION,  # RFC 6455, section 4.4, wants it for those who asked for another
    }  # fmt: skip
    response: WSUpgradeResponse = WSUpgradeResponse.create_error_response(
        refusal.http_status, write_error_body(refusal), headers
    )
    return response


def _check_peer(socket: BotSocket, now: float) -> None:
    silent_s = now - socket.heard_at
    if socket.is_paused:  # what it says waits for us
        return
    if silent_s >= LOST_S:
        socket.abort()
    elif silent_s >= IDLE_S:
        socket.ping()
