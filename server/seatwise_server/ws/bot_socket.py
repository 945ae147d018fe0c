"""One WebSocket of a bot, from its upgrade to its end: whole messages in and out, and limits on what a peer may send."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import grpc
from picows import WSFrame, WSListener, WSMsgType, WSTransport

from seatwise_server.kernel_round_trips import read_round_trip_ms
from seatwise_server.play.inbound import ITEMS_PER_TURN, InboundItems
from seatwise_server.play.play_stream import PushedPlayStream
from seatwise_server.refusal import REFUSAL_DELIVERY_S, Refusal, write_error_body
from seatwise_server.streams import StreamArrival
from seatwise_server.ws.message_formats import MessageFormat, ReadItem

# Refusals as a WebSocket tells them: a last text message with the error of AIP-193, and a close code with the reason.

FIRST_CLOSE_CODE = 4000
"""Close codes of applications begin here (RFC 6455, section 7.4.2). The number of the canonical code is added."""


def close_code(refusal: Refusal) -> int:
    """Return the code with which a refused WebSocket is closed: 4016 for UNAUTHENTICATED, and so on."""
    number: int = grpc.StatusCode[refusal.code].value[0]
    return FIRST_CLOSE_CODE + number


NORMAL_CLOSURE, PROTOCOL_ERROR, UNSUPPORTED_DATA, MESSAGE_TOO_BIG = 1000, 1002, 1003, 1009
"""Close codes of RFC 6455, section 7.4.1."""
LARGEST_MESSAGE = 256 * 1024
"""Bytes of one message of a bot, in one frame or in several: as much as gRPC takes."""
MOST_QUEUED = 16
"""Messages that wait for their reader. With more than these the socket is not read."""


_TEXT, _BINARY, _CONTINUATION = WSMsgType.TEXT, WSMsgType.BINARY, WSMsgType.CONTINUATION
_DATA = (_BINARY, _TEXT, _CONTINUATION)


class SocketMessage(NamedTuple):
    """A whole message of a bot."""

    payload: bytes
    is_text: bool
    at: float
    """When it arrived, by the clock of the loop."""


class BotSocket(WSListener):
    """The server's end of a WebSocket. Messages wait in a queue until somebody reads them, or until a reader is set."""

    def __init__(self, message_format: MessageFormat, arrival: StreamArrival) -> None:
        """`arrival` is when the connection came."""
        self.format = message_format
        self.arrival = arrival
        self._loop = asyncio.get_running_loop()
        self._transport: WSTransport | None = None
        self._queue: deque[SocketMessage] = deque()
        self._arrived = asyncio.Event()
        self._reader: PlayInput | None = None
        self._parts: bytearray | None = None
        """The fragments of a message that is not complete."""
        self._is_text = False
        self.is_paused = False
        """Whether the socket is not read for now."""
        self.is_blocked = False
        """More is written than the peer reads."""
        self._room = asyncio.Event()
        self._room.set()
        self.heard_at = self._loop.time()
        """When the peer last sent a whole frame."""
        self.was_closed_by_peer = False
        """Whether the peer has said that it closes the socket."""
        self.is_closed = False
        """Whether nothing more is read."""
        self.has_bad_token = False
        """Whether nobody has the token that its bot sent, or the token is no longer valid."""
        self.failure: Exception | None = None
        """A fault of ours that has closed the socket."""

    # The side that the owner of a handler uses

    async def receive(self) -> SocketMessage | None:
        """Return the next message; `None` when the socket is closed."""
        while not self._queue:
            if self.failure is not None:
                raise self.failure
            if self.is_closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        message = self._queue.popleft()
        if len(self._queue) < MOST_QUEUED:
            self.resume_reading()
        return message

    def set_reader(self, reader: PlayInput) -> None:
        """From now on messages go to the reader at once; first those that wait."""
        self._reader = reader
        while self._queue:
            reader.on_message(self._queue.popleft())
        reader.on_turn_end()
        if self.is_blocked:
            reader.pause_writing()
        if self.is_closed:
            reader.on_closed()

    def send(self, payload: bytes) -> None:
        """Send a message of the socket's format. On a closed socket this does nothing."""
        if self._transport is not None and not self._transport.underlying_transport.is_closing():
            self._transport.send(_TEXT if self.format.is_text else _BINARY, payload)

    def round_trip_ms(self) -> float | None:
        """Return the least round trip of the connection in ms, as the kernel knows it; None if it does not."""
        if self._transport is None:
            return None
        connection = self._transport.underlying_transport.get_extra_info("socket")
        return None if connection is None else read_round_trip_ms(connection)

    async def wait_for_room(self) -> None:
        """Return when the peer reads what is sent to it."""
        await self._room.wait()

    def pause_reading(self) -> None:
        """Let what the peer sends wait at the peer."""
        if not self.is_paused and self._transport is not None:
            self.is_paused = True
            self._transport.underlying_transport.pause_reading()

    def resume_reading(self) -> None:
        if self.is_paused and self._transport is not None and not self.is_closed:
            self.is_paused = False
            self._transport.underlying_transport.resume_reading()

    def refuse(self, refusal: Refusal) -> None:
        """Tell the peer why the socket ends, and end it."""
        if self._transport is not None:
            self._transport.send(WSMsgType.TEXT, write_error_body(refusal))
            self.close(close_code(refusal), refusal.reason)

    def close(self, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        """End the socket, and hang up soon on a peer that does not."""
        if self._transport is None:
            return
        self._transport.send_close(code, reason.encode())  # type: ignore[arg-type]  # any number will do
        self.resume_reading()  # bytes that nobody has read would break the connection before the peer reads why
        if self.was_closed_by_peer:
            self._transport.disconnect()
        self._loop.call_later(REFUSAL_DELIVERY_S, self.abort)
        self._note_closed()

    def abort(self) -> None:
        """Hang up at once."""
        if self._transport is not None:
            self._transport.disconnect(graceful=False)

    def ping(self) -> None:
        """Ask the peer whether it is there."""
        if self._transport is not None and not self.is_blocked:
            self._transport.send_ping()

    # As picows calls it

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if self.is_closed:
            if frame.msg_type == WSMsgType.CLOSE:
                transport.disconnect()
            return
        try:
            self._take_frame(frame)
        except Exception as error:  # picows would tell its own log only
            self.failure = error
            self._note_closed()

    def _take_frame(self, frame: WSFrame) -> None:
        self.heard_at = self._loop.time()
        kind = frame.msg_type
        if frame.rsv1 or frame.rsv2 or frame.rsv3:
            self.close(PROTOCOL_ERROR, "no extension was agreed upon")
        elif kind in _DATA:
            self._take_data(frame, kind)
        elif kind == WSMsgType.PING:
            self._answer_ping(frame)
        elif kind == WSMsgType.CLOSE:
            self.was_closed_by_peer = True
            self._note_closed()
        if frame.last_in_buffer and self._reader is not None:
            self._reader.on_turn_end()

    def on_ws_disconnected(self, transport: WSTransport) -> None:  # noqa: ARG002
        self._transport = None
        self._room.set()
        self._note_closed()

    def pause_writing(self) -> None:
        self.is_blocked = True
        self._room.clear()
        if self._reader is not None:
            self._reader.pause_writing()

    def resume_writing(self) -> None:
        self.is_blocked = False
        self._room.set()
        if self._reader is not None:
            self._reader.resume_writing()

    def _answer_ping(self, frame: WSFrame) -> None:
        """A peer that does not read is owed no pong: they would pile up."""
        if self._transport is not None and not self.is_blocked:
            self._transport.send_pong(frame.get_payload_as_bytes())

    def _take_data(self, frame: WSFrame, kind: WSMsgType) -> None:
        is_first = kind is not _CONTINUATION
        if is_first == (self._parts is not None):
            self.close(PROTOCOL_ERROR, "a fragment is missing")
            return
        if is_first:
            self._is_text = kind is _TEXT
        if is_first and frame.fin:
            self._take_message(frame.get_payload_as_bytes())
            return
        parts = self._parts = bytearray() if self._parts is None else self._parts
        parts += frame.get_payload_as_memoryview()
        if len(parts) > LARGEST_MESSAGE:
            self.close(MESSAGE_TOO_BIG, f"a message has {LARGEST_MESSAGE} bytes or less")
        elif frame.fin:
            self._parts = None
            self._take_message(bytes(parts))

    def _take_message(self, payload: bytes) -> None:
        message = SocketMessage(payload, self._is_text, self.heard_at)
        if self._reader is not None:
            self._reader.on_message(message)
            return
        self._queue.append(message)
        self._arrived.set()
        if len(self._queue) >= MOST_QUEUED:
            self.pause_reading()

    def _note_closed(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._arrived.set()
            if self._reader is not None:
                self._reader.on_closed()


# Reads the items of a bot's socket, a few in each turn of the event loop, and stops while the bot does not read answers.


class PlayInput:
    """The reader of one play socket: it takes messages in the turn of the loop in which they arrive."""

    def __init__(self, socket: BotSocket, stream: PushedPlayStream, intake: InboundItems) -> None:
        self._socket = socket
        self._stream = stream
        self._intake = intake
        self._loop = asyncio.get_running_loop()
        self._backlog: deque[tuple[Iterator[ReadItem], float]] = deque()
        """Messages whose items are not all taken, with their times of arrival."""
        self._left = ITEMS_PER_TURN
        self._is_scheduled = False
        stream.on_flushed = self._take_items

    def on_message(self, message: SocketMessage) -> None:
        if message.is_text != self._socket.format.is_text:
            self._socket.close(UNSUPPORTED_DATA, f"{self._socket.format.name} has other frames")
            return
        self._backlog.append((self._socket.format.read_items(message.payload), message.at))
        self._left -= 1
        if len(self._backlog) == 1:
            self._take_items()
        if self._backlog:
            self._socket.pause_reading()

    def on_turn_end(self) -> None:
        """No more whole frames have arrived for now."""
        self._left = ITEMS_PER_TURN

    def on_closed(self) -> None:
        """The peer closes the socket, or is gone."""
        if self._socket.was_closed_by_peer:
            self._stream.end(None)
        else:
            self._stream.abandon()

    def pause_writing(self) -> None:
        self._stream.pause_pushing()

    def resume_writing(self) -> None:
        self._stream.resume_pushing()

    def _take_items(self) -> None:
        """Take items as long as there is room for answers, and until others must have their turn."""
        while self._backlog and not self._stream.outbox.is_full:
            if self._left <= 0:
                if not self._is_scheduled:
                    self._is_scheduled = True
                    self._loop.call_soon(self._take_rest)
                return
            try:
                self._take_next(*self._backlog[0])
            except Exception as error:
                self._backlog.clear()
                self._stream.fail(error)
        if not self._backlog:
            self._socket.resume_reading()

    def _take_next(self, items: Iterator[ReadItem], at: float) -> None:
        read = next(items, None)
        if read is None:
            self._backlog.popleft()
        elif self._stream.is_ending:  # what comes late must not undo what came on a newer one
            self._backlog.clear()
        else:
            self._left -= 1
            self._intake.dispatch_item(self._stream, read.item, at, read.fault)

    def _take_rest(self) -> None:
        self._is_scheduled = False
        self._left = ITEMS_PER_TURN
        self._take_items()
