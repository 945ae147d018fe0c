"""The link to one referee: one Play stream that carries all of the bot's seats there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from seatwise.errors import BadTokenError, NotAllowedError, ReplacedError, SeatwiseError, UnavailableError
from seatwise.link.backoff import Retry
from seatwise.link.wire import Wire, WireStream
from seatwise.v1.play_service_pb2 import PlayRequest, PlayRequestItem, PlayResponse, PlayResponseItem, Pong

MOST_UNSENT = 10_000
"""The most items that wait until the referee reads. A thousand seats that sit down and answer again have a fifth of it."""

SeatKey: TypeAlias = tuple[str, int]
"""The match and the seat."""

PlayStream = WireStream[PlayRequest, PlayResponse]

FINAL = (BadTokenError, NotAllowedError, ReplacedError)
"""Errors after which the link must not be opened again. Any other refusal may come from a proxy on the way."""


class LinkedSeat(Protocol):
    """The part of a seat session that a link uses."""

    @property
    def key(self) -> SeatKey:
        """The match and the seat."""

    def sit_down(self) -> None:
        """Sit down, because the link is new."""

    def handle_item(self, item: PlayResponseItem) -> None:
        """Handle an item that the referee has sent to this seat."""


class RefereeLink:
    """The link to one referee. It stays up as long as it has seats; after that it ends when the stream breaks."""

    def __init__(self, address: str, wire: Wire, forget: Callable[[RefereeLink], None]) -> None:
        self.address = address
        self._wire = wire
        self._forget = forget
        self._seats: dict[SeatKey, LinkedSeat] = {}
        self._outbox: list[PlayRequestItem] = []
        self._due = asyncio.Event()
        self._is_linked = False
        self._keeper: asyncio.Task[None] | None = None
        """The task of `keep_link`."""
        self.heard_s = asyncio.get_running_loop().time()
        """The time at which the referee last sent something, in seconds of the event loop's clock."""

    def add_seat(self, seat: LinkedSeat) -> None:
        """Add a seat whose match is at this referee."""
        self._seats[seat.key] = seat
        if self._is_linked:
            seat.sit_down()

    def remove_seat(self, seat: LinkedSeat) -> None:
        """Remove a seat whose match is over or has moved to another referee."""
        self._seats.pop(seat.key, None)

    @property
    def is_idle(self) -> bool:
        """Whether it has no seat."""
        return not self._seats

    def close(self) -> None:
        """Close the link, because nobody needs it."""
        if self._keeper is not None:
            self._keeper.cancel()

    def send_item(self, item: PlayRequestItem) -> None:
        """Send the item with the next message. While the link is down items are dropped, because seats sit down again afterwards."""
        if self._is_linked:
            self._outbox.append(item)
            self._due.set()

    async def keep_link(self) -> None:
        """Keep the link up while there are seats. Raises only errors that a retry cannot mend."""
        self._keeper = asyncio.current_task()
        retry = Retry(f"referee {self.address}")
        while self._seats:
            error: SeatwiseError
            try:
                await self._link_once(retry)
                error = UnavailableError("the referee closed the stream")
            except FINAL:
                raise
            except SeatwiseError as caught:
                error = caught
            if self._seats:
                await retry.wait_after(error)
        self._forget(self)  # nothing was awaited since the check, so no seat can have been added

    async def _link_once(self, retry: Retry) -> None:
        async with self._wire.play(self.address) as stream:
            writer = asyncio.create_task(self._write_all(stream))
            self._is_linked = True
            try:
                for seat in list(self._seats.values()):
                    seat.sit_down()
                while (response := await stream.read()) is not None:
                    retry.note_success()
                    self.heard_s = asyncio.get_running_loop().time()
                    self._dispatch_response(response)
            finally:
                self._is_linked = False
                self._outbox.clear()
                writer.cancel()
                await asyncio.wait({writer})

    async def _write_all(self, stream: PlayStream) -> None:
        """Write all items. No other task may write to this stream."""
        while True:
            await self._due.wait()
            self._due.clear()
            items, self._outbox = self._outbox, []
            if not items:
                continue
            try:
                await stream.write(PlayRequest(items=items))
            except SeatwiseError:
                return  # the reader gets the same error, and raises it

    def _dispatch_response(self, response: PlayResponse) -> None:
        for item in response.items:
            if len(self._outbox) > MOST_UNSENT:
                raise UnavailableError("the referee sends, and does not read what it is answered")
            if item.HasField("ping"):
                self.send_item(PlayRequestItem(pong=Pong(number=item.ping.number)))
                continue
            seat = self._seats.get((item.match, item.seat))
            if seat is not None:
                seat.handle_item(item)
