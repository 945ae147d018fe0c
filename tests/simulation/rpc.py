"""What stands in for gRPC: the wire of the SDK on one side, the door handlers of the server on the other.

The bytes are those of the real thing, and so are the handlers, with the guard around them. A call is a link
of its own; what is written is read in order, a caller that goes away cancels the handler, and a handler that
aborts tells its status.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import grpc

from seatwise.errors import SeatwiseError, UnavailableError, from_rpc
from seatwise.v1.lobby_service_pb2 import AttendResponse
from seatwise.v1.play_service_pb2 import PlayResponse
from seatwise_server.rpc.error_interceptor import CallerAddresses, ErrorInterceptor
from seatwise_server.rpc.grpc_server import GrpcServer
from simulation.clock import Loop
from simulation.network import End, Link, Network
from simulation.web_sockets import SocketServer

ATTEND = "/seatwise.v1.LobbyService/Attend"
PLAY = "/seatwise.v1.PlayService/Play"

CALLER_PATIENCE_S = 4.0
SERVER_PATIENCE_S = 15.0
CONNECT_S = 5.0
WINDOW = 64
"""Messages that may be unread before a write blocks."""

Metadata = tuple[tuple[str, str], ...]


@dataclass
class Opening:
    """The first message of a call."""

    method: str
    metadata: Metadata


@dataclass
class Ending:
    """The last message of a call."""

    code: grpc.StatusCode
    text: str = ""
    trailing: Metadata = ()

    def error(self) -> SeatwiseError:
        """What the SDK makes of it."""
        failed = SimpleNamespace(
            code=lambda: self.code, details=lambda: self.text, trailing_metadata=lambda: self.trailing
        )
        return from_rpc(failed)


class HalfClosed:
    """The caller says no more."""


class Exchange:
    """Who listens where."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self.listeners: dict[str, Listener] = {}
        """By address. A process that has died is still there, and refuses."""
        self.balanced: dict[str, list[str]] = {}
        """Addresses behind which there are several."""
        self._chance = net._chance.of("exchange")

    def listener(self, address: str) -> Listener | None:
        """Whoever listens there now."""
        behind = self.balanced.get(address)
        return self.listeners.get(self._chance.choice(behind) if behind else address)


class Listener:
    """A process of the server: it is given its doors, as gRPC is."""

    def __init__(self, host: str, loop: Loop) -> None:
        self.host = host
        self.loop = loop
        self.is_open = False
        self.on_write: Callable[[Any], None] = lambda _: None
        """Told each message of a Play stream that is written, parsed."""
        self.on_sent: Callable[[], None] = lambda: None
        """Called after each message that is sent."""
        self.on_request: Callable[[], None] = lambda: None
        """Told of each that is about to be read."""
        self.server: GrpcServer = GrpcServer.__new__(
            GrpcServer
        )  # its shipped `add_` methods, and no real server
        self.server.server = self  # type: ignore[assignment]
        self.server._services = []
        self.server._forwarder = None
        self.server._addresses = CallerAddresses()
        self.websockets = SocketServer(self)
        self.calls: dict[asyncio.Task[None], None] = {}
        self._handlers: list[Any] = []
        self._guard = ErrorInterceptor()

    # As grpc.aio.Server

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """As gRPC's."""
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        """As gRPC's; the generic handlers are registered too."""

    # Calls

    def accept(self, link: Link, end: End, opening: Opening) -> None:
        """A call has come."""
        call = ServerCall(link, end, opening, self)
        task = self.keep_task(call.run(self._handler_for))
        end.on_message = call.take
        end.on_lost = lambda: call.hung_up(task)

    def keep_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts what ends with this listener."""
        task = self.loop.create_task(work)
        self.calls[task] = None
        task.add_done_callback(lambda task: self.calls.pop(task, None))
        return task

    async def _handler_for(self, details: Any) -> Any:
        async def plain(details: Any) -> Any:
            found = (handler.service(details) for handler in self._handlers)
            return next((each for each in found if each is not None), None)

        return await self._guard.intercept_service(plain, details)

    def close(self) -> None:
        """Takes no more calls, and ends those that are open."""
        self.is_open = False
        for task in list(self.calls):
            task.cancel()


class ServerCall:
    """One call, as its handler sees it: gRPC's context."""

    def __init__(self, link: Link, end: End, opening: Opening, listener: Listener) -> None:
        self._link = link
        self._end = end
        self._opening = opening
        self._listener = listener
        self._requests: asyncio.Queue[Any] = asyncio.Queue()
        self._ending: Ending | None = None
        self._serialize: Callable[[Any], bytes] | None = None
        self._unread = 0
        self._room = asyncio.Event()
        self._room.set()
        self._is_over = False

    # As grpc.aio.ServicerContext

    def peer(self) -> str:
        """As gRPC's; nothing here depends on where the caller is."""
        return f"sim:{self._opening.method}"

    def invocation_metadata(self) -> Metadata:
        """As gRPC's."""
        return self._opening.metadata

    async def write(self, message: Any) -> None:
        """As gRPC's."""
        raw = self._serialize(message) if self._serialize else message
        if self._opening.method == PLAY:
            self._listener.on_write(PlayResponse.FromString(raw))
        await self._room.wait()
        if self._is_over:
            raise grpc.aio.InternalError("the RPC is over")
        self._unread += 1
        if self._unread >= WINDOW:
            self._room.clear()
        self._link.send(self._end, (raw, self._was_read))
        self._listener.on_sent()

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> None:
        """As gRPC's."""
        self._ending = Ending(code, details, tuple(trailing_metadata))
        raise grpc.aio.AbortError(details)

    def _was_read(self) -> None:
        self._end.hand(self._make_room)

    def _make_room(self) -> None:
        self._unread -= 1
        self._room.set()

    # Its course

    def take(self, message: Any) -> None:
        """The caller says something."""
        if self._opening.method == PLAY:
            self._listener.on_request()
        self._requests.put_nowait(message)

    def hung_up(self, task: asyncio.Task[None]) -> None:
        """The caller is gone."""
        self._is_over = True
        self._requests.put_nowait(HalfClosed)
        self._room.set()
        task.cancel()

    async def run(self, handler_for: Callable[[Any], Any]) -> None:
        """From the first message to the status."""
        ending = Ending(grpc.StatusCode.OK)
        try:
            details = SimpleNamespace(method=self._opening.method, invocation_metadata=self._opening.metadata)
            handler = await handler_for(details)
            if handler is None:
                ending = Ending(grpc.StatusCode.UNIMPLEMENTED, "no such method here")
            else:
                await self._handle(handler)
        except grpc.aio.AbortError:
            assert self._ending is not None
            ending = self._ending
        except asyncio.CancelledError:
            ending = Ending(grpc.StatusCode.CANCELLED)
        except Exception as error:
            ending = Ending(grpc.StatusCode.UNKNOWN, repr(error))
            if not self._is_over:
                self._listener.loop.clock.faults.append(f"{self._opening.method}: {error!r}")
        self._is_over = True
        self._link.send(self._end, ending)
        self._link.close(self._end)

    async def _handle(self, handler: Any) -> None:
        self._serialize = handler.response_serializer
        requests = self._all_requests(handler.request_deserializer)
        if handler.stream_stream:
            async for response in handler.stream_stream(requests, self):
                await self.write(response)
        else:
            await self.write(await handler.unary_unary(await anext(requests), self))

    async def _all_requests(self, parse: Callable[[bytes], Any] | None) -> AsyncIterator[Any]:
        while (message := await self._requests.get()) is not HalfClosed:
            yield parse(message) if parse else message


class Call:
    """One call, as its caller sees it: a `Stream` of the SDK's wire."""

    def __init__(
        self, exchange: Exchange, loop: Loop, address: str, method: str, metadata: Metadata, parse: Any
    ) -> None:
        self._exchange = exchange
        self._loop = loop
        self._method = method
        self._metadata = metadata
        self._parse = parse
        self._heard: asyncio.Queue[Any] = asyncio.Queue()
        self._ending: Ending | None = None
        self._end = End(loop.name, loop, CALLER_PATIENCE_S)
        self._link: Link | None = None
        self._is_linked = asyncio.Event()
        self._task = loop.create_task(self._connect(address))
        self.on_sent: Callable[[Any], None] = lambda _: None
        self.on_read: Callable[[Any], None] = lambda _: None
        self.echoes: Callable[[], bool] = lambda: False
        """Whether the message that is sent now is sent twice."""

    async def _connect(self, address: str) -> None:
        net = self._exchange.net
        listener = self._exchange.listener(address)
        host = listener.host if listener else address
        if freed := net.blocked_until(self._loop.name, host):
            await asyncio.sleep(min(CONNECT_S, freed - net.clock.now))
        await asyncio.sleep(2 * net.delay_s(self._loop.name, host, self._exchange._chance))
        if (
            listener is None or not listener.is_open or listener.loop.is_dead
            or net.blocked_until(self._loop.name, host)
        ):  # fmt: skip
            self._lost()
            return
        far = End(host, listener.loop, SERVER_PATIENCE_S)
        far.on_message = lambda opening: listener.accept(self._link, far, opening)  # type: ignore[arg-type]
        self._link = net.link(self._end, far)
        self._end.on_message, self._end.on_lost = self._heard.put_nowait, self._lost
        self._link.send(self._end, Opening(self._method, self._metadata))
        self._is_linked.set()

    def _lost(self) -> None:
        self._is_linked.set()
        self._heard.put_nowait(Ending(grpc.StatusCode.UNAVAILABLE, "the link is lost"))

    async def write(self, message: Any) -> None:
        """See `Stream`."""
        await self._is_linked.wait()
        if self._link is None or not self._end.is_open or self._ending:
            raise UnavailableError("the stream is closed")
        raw = message.SerializeToString()
        self.on_sent(message)
        for _ in range(1 + self.echoes()):
            self._link.send(self._end, raw)

    async def read(self) -> Any:
        """See `Stream`."""
        if self._ending is None:
            heard = await self._heard.get()
            if not isinstance(heard, Ending):
                raw, was_read = heard
                was_read()
                message = self._parse(raw)
                self.on_read(message)
                return message
            self._ending = heard
        if self._ending.code is grpc.StatusCode.OK:
            return None
        raise self._ending.error()

    def cancel(self) -> None:
        """The caller wants no more of it."""
        self._task.cancel()
        self._is_linked.set()
        if self._link is not None:
            self._link.close(self._end)


class Wire:
    """The SDK's way to its server; see `seatwise.link.wire.Wire`."""

    def __init__(self, exchange: Exchange, loop: Loop, address: str, token: str) -> None:
        self.address = address
        self.on_call: Callable[[str, Call], None] = lambda _address, _call: None
        """Told each Play stream that is opened."""
        self.on_told: Callable[[Any], None] = lambda _: None
        """Told each word of the lobby."""
        self._exchange = exchange
        self._loop = loop
        self._metadata = (("authorization", f"Bearer {token}"),)

    def address_in(self, offer: Any) -> str:
        """See `Wire`."""
        return str(offer.address or self.address)

    @asynccontextmanager
    async def attend(self) -> AsyncIterator[Any]:
        """See `Wire`."""
        call = Call(
            self._exchange, self._loop, self.address, ATTEND, self._metadata, AttendResponse.FromString
        )
        call.on_read = self.on_told
        try:
            yield call
        finally:
            call.cancel()

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[Any]:
        """See `Wire`."""
        call = Call(self._exchange, self._loop, address, PLAY, self._metadata, PlayResponse.FromString)
        self.on_call(address, call)
        try:
            yield call
        finally:
            call.cancel()


async def unary(
    exchange: Exchange, loop: Loop, address: str, method: str, request: Any, response: Any, token: str
) -> Any:
    """A call with one answer; raises a `SeatwiseError`."""
    metadata = (("authorization", f"Bearer {token}"),)
    call = Call(exchange, loop, address, method, metadata, response.FromString)
    try:
        async with asyncio.timeout(10):
            await call.write(request)
            return await call.read()
    except TimeoutError as late:
        raise UnavailableError("no answer in time") from late
    finally:
        call.cancel()
