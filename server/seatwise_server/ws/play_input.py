"""Reads the items of a bot's socket, a few in each turn of the event loop, and stops while the bot does not read answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from seatwise_server.play.inbound import ITEMS_PER_TURN, InboundItems
from seatwise_server.play.play_stream import PushedPlayStream
from seatwise_server.ws.bot_socket import UNSUPPORTED_DATA, BotSocket, SocketMessage
from seatwise_server.ws.message_formats import ReadItem


class PlayInput:
    """The reader of one play socket: a `SocketReader`."""

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
        """See `SocketReader`."""
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
        """See `SocketReader`."""
        self._left = ITEMS_PER_TURN

    def on_closed(self) -> None:
        """See `SocketReader`."""
        if self._socket.was_closed_by_peer:
            self._stream.end(None)
        else:
            self._stream.abandon()

    def pause_writing(self) -> None:
        """See `SocketReader`."""
        self._stream.pause_pushing()

    def resume_writing(self) -> None:
        """See `SocketReader`."""
        self._stream.resume_pushing()

    def _take_items(self) -> None:
        """Takes items as long as there is room for answers, and until others must have their turn."""
        while self._backlog and not self._stream.outbox.is_full:
            if self._left <= 0:
                self._schedule_rest()
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

    def _schedule_rest(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._take_rest)

    def _take_rest(self) -> None:
        self._is_scheduled = False
        self._left = ITEMS_PER_TURN
        self._take_items()
