"""One referee: the one Play stream there, and all of the bot's seats that it carries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from seatwise.errors import BadTokenError, NotAllowedError, ReplacedError, SeatwiseError, UnavailableError
from seatwise.link.backoff import Retry
from seatwise.link.wire import Wire, WireStream
from seatwise.v1.play_service_pb2 import PlayRequest, PlayRequestItem, PlayResponse, PlayResponseItem, Pong

SeatKey: TypeAlias = tuple[str, int]
"""Match and seat."""

PlayStream = WireStream[PlayRequest, PlayResponse]

FINAL = (BadTokenError, NotAllowedError, ReplacedError)
"""After these it would be wrong to come back. Any other refusal may be a mistake of the way there."""


class LinkedSeat(Protocol):
    """What a table knows of a seat."""

    @property
    def key(self) -> SeatKey:
        """Match and seat."""
        ...

    def sit_down(self) -> None:
        """The link is new: sit down over it."""
        ...

    def handle_item(self, item: PlayResponseItem) -> None:
        """The referee says something to this seat."""
        ...


class RefereeLink:
    """The link to one referee. It lives as long as it has seats, and a little longer if nothing breaks it."""

    def __init__(self, address: str, wire: Wire, forget: Callable[[RefereeLink], None]) -> None:
        self.address = address
        self._wire = wire
        self._forget = forget
        self._seats: dict[SeatKey, LinkedSeat] = {}
        self._outbox: list[PlayRequestItem] = []
        self._due = asyncio.Event()
        self._is_linked = False

    def add_seat(self, seat: LinkedSeat) -> None:
        """The seat is at this referee, from now on or again."""
        self._seats[seat.key] = seat
        if self._is_linked:
            seat.sit_down()

    def remove_seat(self, seat: LinkedSeat) -> None:
        """The seat is not here any more."""
        self._seats.pop(seat.key, None)

    def send_item(self, item: PlayRequestItem) -> None:
        """Says it with the next message. While there is no link nothing is kept: seats sit down anew."""
        if self._is_linked:
            self._outbox.append(item)
            self._due.set()

    async def keep_link(self) -> None:
        """Keeps the link while there are seats. Raises only what makes trying again useless."""
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
        self._forget(self)  # nothing is awaited since the check: no seat can have come

    async def _link_once(self, retry: Retry) -> None:
        async with self._wire.play(self.address) as stream:
            writer = asyncio.create_task(self._write_all(stream))
            self._is_linked = True
            try:
                for seat in list(self._seats.values()):
                    seat.sit_down()
                while (response := await stream.read()) is not None:
                    retry.note_success()
                    self._dispatch_response(response)
            finally:
                self._is_linked = False
                self._outbox.clear()
                writer.cancel()
                await asyncio.wait({writer})

    async def _write_all(self, stream: PlayStream) -> None:
        """The only writer of this stream: two would lose messages."""
        while True:
            await self._due.wait()
            self._due.clear()
            items, self._outbox = self._outbox, []
            if not items:
                continue
            try:
                await stream.write(PlayRequest(items=items))
            except SeatwiseError:
                return  # the reader is told the same, and says it

    def _dispatch_response(self, response: PlayResponse) -> None:
        for item in response.items:
            if item.HasField("ping"):
                self.send_item(PlayRequestItem(pong=Pong(number=item.ping.number)))
                continue
            seat = self._seats.get((item.match, item.seat))
            if seat is not None:
                seat.handle_item(item)
