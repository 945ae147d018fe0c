"""What stands in for WebSockets: the two ends of a connection, beneath the shipped sockets of the SDK and of the server.

All that picows would do is here: an upgrade, frames in order, and the end of a link. What the server's `BotSocket` and the
SDK's `WebSocketStream` make of it is shipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from picows import WSMsgType

from seatwise.errors import UnavailableError
from seatwise.link.endpoint import Endpoint
from seatwise.link.security import Security
from seatwise.link.web_socket_wire import WebSocketWire
from seatwise.v1.play_service_pb2 import PlayResponse
from seatwise_server.kernel_round_trips import MIN_RTT
from seatwise_server.refusal import Refusal
from seatwise_server.streams import note_arrival_of_stream
from seatwise_server.ws.bot_socket import BotSocket
from seatwise_server.ws.websocket_server import PLAY_PATH, Upgrade, UpgradeRules, check_upgrade
from simulation.clock import Loop
from simulation.network import End, Link

CALLER_PATIENCE_S = 7.0
SERVER_PATIENCE_S = 15.0
CONNECT_S = 3.0
ROUND_TRIP_US = 300
"""The least that a link takes, there and back, in microseconds."""
WINDOW = 64
"""Frames that may be unread before the writer is told to pause."""


UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "c2ltdWxhdGVkLWJvdC1rZQ==",
}
"""The headers that picows sends with each request for a WebSocket."""


@dataclass
class Request:
    """The first message of a link."""

    path: str
    headers: dict[str, str]


@dataclass
class Refused:
    """The answer to a request that is no upgrade."""

    refusal: Refusal


class Upgraded:
    """The answer to a request that is one."""


@dataclass
class Frame:
    """A frame, as picows shows it."""

    msg_type: WSMsgType
    payload: bytes
    rsv1 = rsv2 = rsv3 = False
    fin = last_in_buffer = True

    def get_payload_as_bytes(self) -> bytes:
        """As picows'."""
        return self.payload


class TcpSocket:
    """The socket of a link, as the server asks it for its round trip."""

    def getsockopt(self, *_: int) -> bytes:
        """Returns what the kernel knows of it."""
        return MIN_RTT.pack(ROUND_TRIP_US)


class Transport:
    """One end of a WebSocket, as picows' transport; frames are given to its listener."""

    def __init__(self, link: Link, end: End, listener: Any) -> None:
        self.underlying_transport = self
        self.on_send: Callable[[Frame], None] = lambda _: None
        """Told each frame that is to be sent."""
        self.on_sent: Callable[[], None] = lambda: None
        self._link = link
        self._end = end
        self._listener = listener
        self._unread = 0
        self._held: list[Any] | None = None
        """What has come while it was not read."""
        self._is_closing = False
        end.on_message, end.on_lost = self._take, self._lost

    def get_extra_info(self, _: str) -> TcpSocket:
        """Returns the socket, as far as its round trip is concerned."""
        return TcpSocket()

    # As picows' transport

    def send(self, kind: WSMsgType, payload: bytes) -> None:
        """One frame."""
        if self._is_closing or not self._end.is_open:
            return
        frame = Frame(kind, payload)
        self.on_send(frame)
        self._unread += 1
        self._link.send(self._end, (frame, self._was_read))
        if kind == WSMsgType.BINARY:
            self.on_sent()
        if self._unread == WINDOW:
            self._listener.pause_writing()

    def send_ping(self, payload: bytes = b"") -> None:
        """As picows'."""
        self.send(WSMsgType.PING, payload)

    def send_pong(self, payload: bytes = b"") -> None:
        """As picows'."""
        self.send(WSMsgType.PONG, payload)

    def send_close(self, code: Any = 1000, reason: bytes = b"") -> None:
        """As picows'."""
        self.send(WSMsgType.CLOSE, int(getattr(code, "value", code)).to_bytes(2) + reason)
        self._is_closing = True

    def disconnect(self, graceful: bool = True) -> None:  # noqa: ARG002
        """As picows'."""
        self._is_closing = True
        if self._end.is_open:
            self._link.close(self._end)
            asyncio.get_running_loop().call_soon(self._listener.on_ws_disconnected, self)

    async def wait_disconnected(self) -> None:
        """As picows'. A link of the world is closed at once."""

    # As asyncio's transport

    def is_closing(self) -> bool:
        """As asyncio's."""
        return self._is_closing or not self._end.is_open

    def pause_reading(self) -> None:
        """As asyncio's."""
        self._held = self._held if self._held is not None else []

    def resume_reading(self) -> None:
        """As asyncio's."""
        held, self._held = self._held or [], None
        for each in held:
            asyncio.get_running_loop().call_soon(self._take, each)

    # As the network calls it

    def _take(self, message: Any) -> None:
        if self._held is not None:
            self._held.append(message)
        elif self._end.is_open:
            frame, was_read = message
            was_read()
            self._listener.on_ws_frame(self, frame)

    def _lost(self) -> None:
        self._listener.on_ws_disconnected(self)

    def _was_read(self) -> None:
        self._end.hand(self._make_room)

    def _make_room(self) -> None:
        self._unread -= 1
        if self._unread == WINDOW - 1 and not self._is_closing:
            self._listener.resume_writing()


class SocketServer:
    """The server's end: what `WebSocketServer` is to the roles."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener
        self._handlers: dict[str, Any] = {}

    def add_handler(self, path: str, handler: Any) -> None:
        """As the shipped one."""
        self._handlers[path] = handler

    def accept(self, link: Link, end: End, request: Request) -> None:
        """A request has come."""
        try:
            rules = UpgradeRules(self._handlers.keys(), ())
            upgrade = check_upgrade(request.path, request.headers, rules)
        except Refusal as refusal:
            link.send(end, Refused(refusal))
            link.close(end)
            return
        link.send(end, Upgraded())
        socket = BotSocket(upgrade.format, note_arrival_of_stream())
        transport = Transport(link, end, socket)
        transport.on_sent = lambda: self._listener.on_sent()
        if upgrade.path == PLAY_PATH:
            transport.on_send = self._note_frame
            taken = end.on_message
            end.on_message = lambda message: (self._listener.on_request(), taken(message))
        socket.on_ws_connected(transport)  # type: ignore[arg-type]
        self._listener.keep_task(self._serve(socket, upgrade))

    async def _serve(self, socket: BotSocket, upgrade: Upgrade) -> None:
        try:
            await self._handlers[upgrade.path].serve_socket(socket, upgrade, f"sim:{upgrade.path}")
        finally:
            socket.abort()

    def _note_frame(self, frame: Frame) -> None:
        if frame.msg_type == WSMsgType.BINARY:
            self._listener.on_write(PlayResponse.FromString(frame.payload))


class Watched:
    """A stream of the SDK that a world listens in on."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.on_sent: Callable[[Any], None] = lambda _: None
        self.on_read: Callable[[Any], None] = lambda _: None
        self.echoes: Callable[[], bool] = lambda: False
        """Whether the message that is sent now is sent twice."""

    async def write(self, message: Any) -> None:
        """See `WireStream`."""
        self.on_sent(message)
        for _ in range(1 + self.echoes()):
            await self._stream.write(message)

    async def read(self) -> Any:
        """See `WireStream`."""
        message = await self._stream.read()
        if message is not None:
            self.on_read(message)
        return message


class Everywhere(set[str]):
    """Where nothing needs to be explained when a link fails."""

    def __contains__(self, _: object) -> bool:
        return True


class SocketWire(WebSocketWire):
    """The shipped wire, over links of the world."""

    def __init__(self, exchange: Any, loop: Loop, address: str, token: str) -> None:
        super().__init__(f"ws://{address}", token, security=Security(insecure=True))
        self._heard = Everywhere()
        self._exchange = exchange
        self._loop = loop
        self.on_call: Callable[[str, Watched], None] = lambda _address, _call: None
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
            self.on_call(address.removeprefix("ws://"), watched)
            yield watched

    async def _connect(self, endpoint: Endpoint, path: str, stream: Any, headers: Any) -> Any:
        """Instead of picows: a link, the request, its answer."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        end = End(self._loop.name, self._loop, CALLER_PATIENCE_S)
        end.on_message = lambda message: None if answer.done() else answer.set_result(message)
        end.on_lost = lambda: None if answer.done() else answer.set_result(None)
        listener = self._exchange.listener(endpoint.target)
        await self._reach(listener, endpoint.target)
        far = End(listener.host, listener.loop, SERVER_PATIENCE_S)
        far.on_message = lambda request: listener.websockets.accept(link, far, request)
        link = self._exchange.net.link(end, far)
        link.send(end, Request(path, {**UPGRADE, **dict([*self._headers, *headers])}))
        try:
            async with asyncio.timeout(CONNECT_S):
                answered = await answer
        except TimeoutError:
            answered = None
        return self._upgrade(link, end, stream, answered)

    def _upgrade(self, link: Link, end: End, stream: Any, answered: Any) -> Transport:
        if not isinstance(answered, Upgraded):
            link.close(end)
            if answered is not None:
                raise UnavailableError(answered.refusal.message, answered.refusal.reason)
            raise UnavailableError("the link is lost")
        transport = Transport(link, end, stream)
        stream.on_ws_connected(transport)
        return transport

    async def _reach(self, listener: Any, address: str) -> None:
        net = self._exchange.net
        host = listener.host if listener else address
        if freed := net.blocked_until(self._loop.name, host):
            await asyncio.sleep(min(CONNECT_S, freed - net.clock.now))
        await asyncio.sleep(2 * net.delay_s(self._loop.name, host, self._exchange._chance))
        is_there = listener is not None and listener.is_open and not listener.loop.is_dead
        if not is_there or net.blocked_until(self._loop.name, host):
            raise UnavailableError("nobody listens there")
