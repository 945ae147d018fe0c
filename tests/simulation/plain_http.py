"""What stands in for the sockets of HTTP: two ends of a link that carry bytes.

All above them is shipped: the wire of the SDK and its connections, uvicorn with the bounds of the server, the application,
and the relay, whose own wire to lobby and referees is the one of the simulation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from seatwise.errors import UnavailableError
from seatwise.link.rest_wire import HttpConnection, RestWire
from seatwise.link.security import Security
from seatwise_server.limits import BOT_HTTP_STREAMS
from seatwise_server.rest.bot_relay import BotRelays, add_bot_endpoints
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.http_server import HttpServer
from seatwise_server.rest.rest_app import new_rest_app
from seatwise_server.rest.routes import UrlTree
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.matches import LivingReferee
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.store import Store, new_client
from simulation.clock import Loop
from simulation.network import End, Link
from simulation.redis_host import URL
from simulation.rpc import Call, Exchange, Wire
from simulation.web_sockets import Watched

HTTP = "localhost:7480"
"""Where bots reach HTTP, in every world."""
CALLER_PATIENCE_S = 11.0
SERVER_PATIENCE_S = 30.0
CONNECT_S = 3.0
WINDOW = 4096
"""Bytes that may be unread before the writer is told to pause."""
MOST_CONNECTIONS = 1000
GRACE_S = 1.0


class ByteTransport(asyncio.Transport):
    """One end of a connection, as asyncio's transport."""

    def __init__(self, link: Link, end: End, protocol: Any, peer: str) -> None:
        super().__init__({"peername": (peer, 0)})
        self._link, self._end, self._protocol = link, end, protocol
        self._unread = 0
        self._is_write_paused = self._is_closing = False
        self._held: list[tuple[Callable[..., None], tuple[Any, ...]]] | None = None
        """What has come while it was not read."""
        end.on_message = lambda message: self._come(self._take, *message)
        end.on_lost = lambda: self._come(self._lose)
        protocol.connection_made(self)

    # As asyncio's

    def write(self, data: Any) -> None:
        """As asyncio's."""
        if self._is_closing or not self._end.is_open or not data:
            return
        size = len(data)
        self._unread += size
        self._link.send(self._end, (bytes(data), lambda: self._end.hand(self._make_room, size)))
        if self._unread > WINDOW and not self._is_write_paused:
            self._is_write_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        """As asyncio's."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """As of TLS."""
        return False

    def is_closing(self) -> bool:
        """As asyncio's."""
        return self._is_closing

    def close(self) -> None:
        """As asyncio's."""
        if not self._is_closing:
            self._is_closing = True
            if self._end.is_open:
                assert self._end.loop is not None
                self._link.close(self._end)
                self._end.loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def pause_reading(self) -> None:
        """As asyncio's."""
        self._held = self._held if self._held is not None else []

    def resume_reading(self) -> None:
        """As asyncio's."""
        held, self._held = self._held or [], None
        for act, given in held:
            asyncio.get_running_loop().call_soon(self._come, act, *given)

    # As the network calls it

    def _come(self, act: Callable[..., None], *given: Any) -> None:
        if self._held is not None:
            self._held.append((act, given))
        elif not self._is_closing:
            act(*given)

    def _take(self, data: bytes, was_read: Callable[[], None]) -> None:
        was_read()
        self._protocol.data_received(data)

    def _lose(self) -> None:
        self._is_closing = True
        self._protocol.connection_lost(ConnectionResetError("the link is cut") if self._link.is_cut else None)

    def _make_room(self, size: int) -> None:
        self._unread -= size
        if self._is_write_paused and self._unread <= WINDOW // 2:
            self._is_write_paused = False
            if not self._is_closing:
                self._protocol.resume_writing()


class HttpListener:
    """The port of a process: what `Loop.create_server` returns."""

    def __init__(self, loop: Loop) -> None:
        self.host, self.loop = loop.name, loop
        self.is_open = False
        self._new_protocol: Callable[[], Any]

    def listen(self, new_protocol: Callable[[], Any]) -> HttpListener:
        """Connections are taken from now on."""
        self._new_protocol, self.is_open = new_protocol, True
        return self

    def accept(self, link: Link, end: End, peer: str) -> None:
        """A connection has come."""
        ByteTransport(link, end, self._new_protocol(), peer)

    def close(self) -> None:
        """As asyncio's server."""
        self.is_open = False

    async def wait_closed(self) -> None:
        """As asyncio's server."""


class Ordered(dict[Any, None]):
    """A set with the same order in every run."""

    def add(self, member: Any) -> None:
        """As a set's."""
        self[member] = None

    def discard(self, member: Any) -> None:
        """As a set's."""
        self.pop(member, None)


class HttpProcess:
    """One incarnation of the process that serves HTTP: what `Server` is to the others."""

    referee = None

    def __init__(self, loop: Loop, name: str, exchange: Exchange, lobby: str) -> None:
        self.loop, self.name = loop, name
        self.listener = HttpListener(loop)
        self.is_leaving = self.has_left = False
        self.on_failed: Callable[[str], None] = lambda _: None
        self.new_strength_client = None
        store = Store(new_client(URL))
        self.relays = BotRelays(
            lambda token: Wire(exchange, loop, lobby, token),
            LivingReferee(store).find_address,
            OpenStreams(store.credentials),
        )
        self._streams = EventStreams(BOT_HTTP_STREAMS)
        loop.listen = self.listener.listen
        self._main = loop.create_task(self._serve())

    async def _serve(self) -> None:
        authenticator = Authenticator(Store(new_client(URL)).credentials, lambda: "")
        urls = UrlTree()
        add_bot_endpoints(urls, self.relays, authenticator, self._streams)
        self._server = HttpServer(new_rest_app(urls), MOST_CONNECTIONS)
        self._server._state.connections = Ordered()  # type: ignore[assignment]
        await self._server.start(None, None)  # type: ignore[arg-type]  # the loop needs no socket
        await self._server.run_clock()

    @property
    def left(self) -> dict[str, list[str]]:
        """What is open of bots."""
        return {
            "play streams": list(self.relays._open), "attendances": list(self.relays._attending),
            "requests": [str(task) for task in self._server._state.tasks],
        }  # fmt: skip

    def leave(self, on_left: Callable[[], None]) -> None:
        """Stops in order, as at SIGTERM."""
        if not self.is_leaving and not self.loop.is_dead:
            self.is_leaving = True
            self.loop.create_task(self._leave(on_left))

    async def _leave(self, on_left: Callable[[], None]) -> None:
        self._main.cancel()
        self._streams.end_all()
        if self.listener.is_open:
            await self._server.stop(GRACE_S)
        self.has_left = True
        on_left()


class HttpWire(RestWire):
    """The shipped wire, over links of the world."""

    def __init__(self, exchange: Exchange, loop: Loop, _lobby: str, token: str) -> None:
        super().__init__(f"rest+http://{HTTP}", token, security=Security(insecure=True))
        loop.connect = _way_from(loop, exchange)
        self.on_call: Callable[[str, Watched | Call], None] = lambda _address, _call: None
        """Told each Play stream that is opened."""
        self.on_told: Callable[[Any], None] = lambda _: None
        """Told each word of the lobby."""

    @asynccontextmanager
    async def attend(self) -> AsyncIterator[Any]:
        """See `Wire`."""
        async with super().attend() as stream:
            watched = Watched(stream)
            watched.on_read = self.on_told
            yield watched

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[Any]:
        """See `Wire`."""
        async with super().play(address) as stream:
            watched = Watched(stream)
            self.on_call(HTTP, watched)
            yield watched

    async def connect(self) -> HttpConnection:
        """A failure is explained without a thread."""
        try:
            return await HttpConnection.open(self._endpoint, None)
        except (OSError, TimeoutError) as error:
            raise UnavailableError("nobody listens there") from error


def _way_from(loop: Loop, exchange: Exchange) -> Callable[..., Any]:
    """How a bot connects; see `Loop.create_connection`."""
    net = exchange.net

    async def connect(new_protocol: Callable[[], Any], *_: Any, **__: Any) -> Any:
        listener: Any = exchange.listener(HTTP)
        if freed := net.blocked_until(loop.name, listener.host):
            await asyncio.sleep(min(CONNECT_S, freed - net.clock.now))
        await asyncio.sleep(2 * net.delay_s(loop.name, listener.host, exchange._chance))
        if not listener.is_open or listener.loop.is_dead or net.blocked_until(loop.name, listener.host):
            raise ConnectionRefusedError("nobody listens there")
        near = End(loop.name, loop, CALLER_PATIENCE_S)
        far = End(listener.host, listener.loop, SERVER_PATIENCE_S)
        link = net.link(near, far)
        listener.loop.call_soon(listener.accept, link, far, loop.name)
        protocol = new_protocol()
        return ByteTransport(link, near, protocol, listener.host), protocol

    return connect
