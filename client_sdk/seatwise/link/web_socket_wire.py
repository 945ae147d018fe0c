"""The transport over WebSocket: the subprotocol seatwise.v1.proto, with the security rules of gRPC's transport."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any, Generic

import grpc
import picows
from google.protobuf.message import DecodeError

from seatwise.errors import (
    EncryptionError,
    SeatwiseError,
    UnavailableError,
    clean_text,
    error_class,
    from_json,
)
from seatwise.link.dialing import (
    CODES_OF_HTTP,
    HANDSHAKE_S,
    answers_in_clear,
    clear_text_only,
    explain_failure,
    link_error,
    make_context,
    proxy_to,
    speaks_tls,
    tls_only,
)
from seatwise.link.endpoint import (
    Endpoint,
    check_offered_address,
    is_web_socket_address,
    refuse_clear_text,
    resolve_endpoint,
    web_socket_path,
)
from seatwise.link.security import Security
from seatwise.link.wire import NO_MESSAGE, GrpcWire, Received, Sent, WireStream, credentials_of
from seatwise.v1.lobby_service_pb2 import AttendRequest, AttendResponse, SeatOffer
from seatwise.v1.play_service_pb2 import PlayRequest, PlayResponse

SUBPROTOCOL = "seatwise.v1.proto"
KEEPALIVE_S = 5.0
"""Seconds of silence after which the server is asked whether it is there."""
KEEPALIVE_TIMEOUT_S = 2.0
"""Seconds after which a server that was asked is given up."""
LARGEST_RESPONSE = 4 * 1024 * 1024
"""Bytes. gRPC takes as much."""
MOST_UNREAD_FRAMES = 64
"""Messages that wait for the bot. With more than these the link is not read."""

ATTEMPT_S = 1.0
"""The longest wait, in seconds, for a WebSocket that gRPC can replace. The seat's time to sit down runs."""
MOST_ADDRESSES = 256
"""The most referees whose address for WebSockets is remembered."""
HANG_UP_S = 1.0
"""Seconds in which the rest is sent when a link is closed. A server that reads nothing is not waited for any longer."""

_NORMAL_CLOSURE = 1000
FIRST_CLOSE_CODE = 4000
"""Close codes of refusals begin here; the number of the gRPC code is added."""
_CODE_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}

log = logging.getLogger("seatwise")
_log = logging.Logger("seatwise.picows", logging.CRITICAL + 1)  # each link that breaks is logged by us
_log.propagate = False


class WebSocketWire:
    """The wire over WebSocket. It sends the token in clear to another machine only if that is allowed."""

    def __init__(
        self,
        address: str,
        token: str,
        front_door: bool = False,
        security: Security | None = None,
        *,
        explains: bool = True,
    ) -> None:
        """`explains` says that a link that cannot be opened is looked into, which takes seconds."""
        self.address = address
        self._explains = explains
        self._token = token.strip()
        self._headers = [("Authorization", value) for _, value in credentials_of(self._token)]
        self._headers.append(("User-Agent", f"seatwise-python/{version('seatwise')}"))
        self._headers.append(("Sec-WebSocket-Protocol", SUBPROTOCOL))
        self._front_door = front_door
        self._security = security or Security.resolve_options()
        self._lobby = self._resolve_address(address)
        self._heard: set[str] = set()
        """Addresses at which an upgrade has worked, so that nothing needs to be explained if a link fails there."""

    def address_in(self, offer: SeatOffer) -> str:
        if self._front_door:
            return offer.ws_address or offer.address or self.address
        return offer.ws_address or ("" if offer.address else self.address)

    @asynccontextmanager
    async def attend(self) -> AsyncIterator[WireStream[AttendRequest, AttendResponse]]:
        async with self._open_stream(
            self._lobby, f"{web_socket_path(self.address)}/v1/attend", AttendResponse
        ) as stream:
            yield stream

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[WebSocketStream[PlayRequest, PlayResponse]]:
        is_lobby = self._front_door or address == self.address
        endpoint = self._lobby if is_lobby else self._resolve_address(address, self._lobby)
        prefix = web_socket_path(address if is_web_socket_address(address) else self.address)
        named = ("Seatwise-Referee", address)
        async with self._open_stream(endpoint, f"{prefix}/v1/play", PlayResponse, named) as stream:
            yield stream

    def _resolve_address(self, address: str, lobby: Endpoint | None = None) -> Endpoint:
        endpoint = resolve_endpoint(address, insecure=self._security.insecure, lobby=lobby)
        refuse_clear_text(endpoint, self._token, insecure=self._security.insecure)
        return endpoint

    @asynccontextmanager
    async def _open_stream(
        self, endpoint: Endpoint, path: str, response: Any, *headers: tuple[str, str]
    ) -> AsyncIterator[WebSocketStream[Any, Any]]:
        stream: WebSocketStream[Any, Any] = WebSocketStream(response)
        try:
            transport = await self._connect(endpoint, path, stream, headers)
        except UnavailableError as error:
            if error.reason or endpoint.target in self._heard or not self._explains:
                raise
            raise await asyncio.to_thread(_explain_hang_up, endpoint, self._security, error) from error
        self._heard.add(endpoint.target)
        try:
            yield stream
        finally:
            await _hang_up(transport)

    async def _connect(
        self,
        endpoint: Endpoint,
        path: str,
        stream: WebSocketStream[Any, Any],
        headers: tuple[tuple[str, str], ...],
    ) -> picows.WSTransport:
        context = make_context(endpoint, self._security)
        try:
            transport, _ = await picows.ws_connect(
                lambda: stream,
                endpoint.with_scheme(is_encrypted=endpoint.is_encrypted) + path,
                ssl_context=context,
                extra_headers=[*self._headers, *headers],
                websocket_handshake_timeout=HANDSHAKE_S,
                logger_name=_log,
                enable_auto_ping=True,
                enable_auto_pong=False,  # it answers a server that reads nothing, too, until the memory is full
                auto_ping_idle_timeout=KEEPALIVE_S,
                auto_ping_reply_timeout=KEEPALIVE_TIMEOUT_S,
                max_frame_size=LARGEST_RESPONSE,
                max_redirects=0,
                proxy=proxy_to(endpoint),
                use_aiofastnet=False,  # it does not know the class that checks pins
                ssl_handshake_timeout=HANDSHAKE_S if context else None,
            )
        except (TimeoutError, OSError, ValueError, picows.WSError) as error:
            raise _typed_error(endpoint, error) from error
        if not stream.is_open:  # it was hung up on before the upgrade, which picows does not tell
            raise UnavailableError("the server hung up instead of an upgrade to a WebSocket")
        return transport


class WebSocketFirstWire:
    """The wire over gRPC, except that seats are played over WebSocket where that works, because it takes less time.

    gRPC replaces a WebSocket that does not open at once, or breaks before the referee has sent anything. So no seat is lost.
    """

    def __init__(self, grpc: GrpcWire, web_sockets: WebSocketWire, *, takes_any_host: bool) -> None:
        """`takes_any_host` says that a WebSocket may lead to another host than gRPC does."""
        self.address = grpc.address
        self._grpc, self._web_sockets, self._takes_any_host = grpc, web_sockets, takes_any_host
        self._announced: dict[str, str] = {}
        """Addresses for WebSockets, by those for gRPC."""
        self._failed: set[str] = set()
        """Addresses for WebSockets where only gRPC has worked."""

    def address_in(self, offer: SeatOffer) -> str:
        address = self._grpc.address_in(offer)
        if len(self._announced) > MOST_ADDRESSES:
            self._announced.clear()
        try:
            self._announced[address] = self._web_socket_in(offer, self._grpc.endpoint_at(address))
        except (SeatwiseError, ValueError):  # gRPC says why nothing can be reached there
            self._announced[address] = ""
        return address

    def _web_socket_in(self, offer: SeatOffer, by_grpc: Endpoint) -> str:
        """Return the address for WebSockets that an offer names; empty if there is none, or it may not be used."""
        announced = offer.ws_address
        if offer.ws_port and not (announced or offer.address):
            host = f"[{by_grpc.host}]" if ":" in by_grpc.host else by_grpc.host
            announced = f"{'wss' if by_grpc.is_encrypted else 'ws'}://{host}:{offer.ws_port}"
        check_offered_address(announced)
        found = resolve_endpoint(announced, lobby=by_grpc)
        is_near = found.host.lower() == by_grpc.host.lower() or (found.is_local and by_grpc.is_local)
        is_usable = found.is_web_socket and found.is_encrypted >= by_grpc.is_encrypted
        return announced if is_usable and (is_near or self._takes_any_host) else ""

    def attend(self) -> AbstractAsyncContextManager[WireStream[AttendRequest, AttendResponse]]:
        return self._grpc.attend()

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[WireStream[PlayRequest, PlayResponse]]:
        announced = self._announced.get(address, "")
        failure: Exception | None = None
        async with AsyncExitStack() as stack:
            socket: WebSocketStream[Any, Any] | None = None
            if announced and announced not in self._failed:
                try:
                    async with asyncio.timeout(ATTEMPT_S):
                        socket = await stack.enter_async_context(self._web_sockets.play(announced))
                except (SeatwiseError, TimeoutError) as error:
                    failure = error
                    log.info("%s: %s; playing by gRPC", announced, error or "no answer in time")
            if socket is None:
                by_grpc = await stack.enter_async_context(self._grpc.play(address))
                try:
                    yield by_grpc
                finally:
                    if failure and by_grpc.has_heard:  # else the server is down
                        self._failed.add(announced)
                return
            try:
                yield socket
            except SeatwiseError as error:
                if socket.has_heard:
                    raise
                self._failed.add(announced)  # e.g. another server has this port, and knows no such token
                raise UnavailableError(f"{announced}: {error}; playing by gRPC") from error


async def _hang_up(transport: picows.WSTransport) -> None:
    """Close the WebSocket. Why it broke, if it did, was told to its reader."""
    transport.send_close(picows.WSCloseCode.OK)
    transport.disconnect()
    try:
        async with asyncio.timeout(HANG_UP_S):
            await transport.wait_disconnected()
    except TimeoutError:
        transport.disconnect(graceful=False)
    except (picows.WSError, OSError) as error:
        log.debug("the WebSocket broke: %s", error)


class WebSocketStream(picows.WSListener, Generic[Sent, Received]):
    """An open WebSocket that raises `SeatwiseError`: a `WireStream`."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._transport: picows.WSTransport | None = None
        self._unread: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._is_paused = False
        self._error: SeatwiseError | None = None
        """The last words of a server that refuses."""
        self._is_over = False
        self.has_heard = False
        """Whether the server has sent a message."""

    @property
    def is_open(self) -> bool:
        """Whether the upgrade is done."""
        return self._transport is not None

    async def write(self, message: Sent) -> None:
        if self._is_over or self._transport is None:
            raise self._error or UnavailableError("the stream is closed")
        sent: Any = message
        self._transport.send(picows.WSMsgType.BINARY, sent.SerializeToString())
        if not self._room.is_set():
            await self._room.wait()

    async def read(self) -> Received | None:
        while not self._unread:
            if self._is_over:
                if self._error is not None:
                    raise self._error
                return None
            self._arrived.clear()
            await self._arrived.wait()
        payload = self._unread.popleft()
        self.has_heard = True
        if self._is_paused and len(self._unread) < MOST_UNREAD_FRAMES and self._transport is not None:
            self._is_paused = False
            self._transport.underlying_transport.resume_reading()
        try:
            message: Received = self._response.FromString(payload)
        except DecodeError:
            raise UnavailableError(NO_MESSAGE) from None
        return message

    # As picows calls it

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        """The upgrade is done."""
        self._transport = transport

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """A frame has arrived. A server sends each message in one."""
        if frame.msg_type == picows.WSMsgType.BINARY:
            self._take_message(frame.get_payload_as_bytes(), transport)
        elif frame.msg_type == picows.WSMsgType.TEXT:
            self._error = from_json(frame.get_payload_as_bytes())
        elif frame.msg_type == picows.WSMsgType.PING and self._room.is_set():
            transport.send_pong(frame.get_payload_as_bytes())
        elif frame.msg_type == picows.WSMsgType.CLOSE:
            payload = frame.get_payload_as_bytes()
            self._note_close(int.from_bytes(payload[:2]), payload[2:])
            transport.send_close(picows.WSCloseCode.OK)
            transport.disconnect()

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:  # noqa: ARG002
        """The connection is gone."""
        self._end(self._error or UnavailableError("the link is lost"))

    def pause_writing(self) -> None:
        """More is written than the server reads."""
        self._room.clear()

    def resume_writing(self) -> None:
        """The server reads again."""
        self._room.set()

    def _take_message(self, payload: bytes, transport: picows.WSTransport) -> None:
        self._unread.append(payload)
        self._arrived.set()
        if len(self._unread) >= MOST_UNREAD_FRAMES and not self._is_paused:
            self._is_paused = True
            transport.underlying_transport.pause_reading()

    def _note_close(self, code: int, reason: bytes) -> None:
        if code == _NORMAL_CLOSURE or self._error is not None:
            self._end(self._error)
        elif code > FIRST_CLOSE_CODE:
            named = clean_text(reason.decode("utf-8", "replace"))
            self._end(error_class(named, _CODE_NAMES.get(code - FIRST_CLOSE_CODE, ""))(named, named))
        else:
            self._end(UnavailableError(f"the server closed the link with code {code}"))

    def _end(self, error: SeatwiseError | None) -> None:
        if not self._is_over:
            self._is_over, self._error = True, error
            self._arrived.set()
            self._room.set()


def _typed_error(endpoint: Endpoint, error: Exception) -> SeatwiseError:
    """Return what a bot is told of a link that could not be opened."""
    if isinstance(error, picows.WSHandshakeError) and error.response is not None:
        return _read_refused_upgrade(int(error.response.status), error.raw_body or b"")
    return link_error(endpoint, error)


def _explain_hang_up(endpoint: Endpoint, security: Security, error: SeatwiseError) -> SeatwiseError:
    """Return an `EncryptionError` if TLS is why the link failed, else the same error. This blocks."""
    if endpoint.is_encrypted and answers_in_clear(endpoint):
        return EncryptionError(clear_text_only(endpoint))
    if endpoint.is_encrypted:
        return explain_failure(endpoint, security, error)
    return EncryptionError(tls_only(endpoint)) if speaks_tls(endpoint) else error


def _read_refused_upgrade(status: int, body: bytes) -> SeatwiseError:
    if body.startswith(b'{"error"'):
        return from_json(body)
    code = CODES_OF_HTTP.get(status, "UNAVAILABLE")
    return error_class("", code)(f"the upgrade to a WebSocket is answered with HTTP {status}")
