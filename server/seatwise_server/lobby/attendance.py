"""One bot's presence: what the lobby has to tell it, and the limit it set."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_server.refusal import LAST_WORD_S, Refusal
from seatwise_server.store import SeatOf

MOST_UNREAD = 1024
"""Responses that a bot may leave unread before its stream is ended."""


class AttendanceStream:
    """As long as one Attend stream lasts."""

    def __init__(self, bot: str, queues: tuple[str, ...], max_matches: int) -> None:
        self.bot = bot
        self.attend_id = secrets.token_hex(8)
        self.turn = 0
        """Among the streams of this bot; the store gives it."""
        self.is_written = False
        """Whether the store knows of it, so that what the store says may be about it."""
        self.queues = queues
        self.max_matches = max_matches
        self.told: dict[tuple[str, int], int] = {}
        """The epoch of the last offer of each open seat."""
        self.looking = asyncio.Lock()
        """Held by whoever looks which of its offers stand, until it is told."""
        self.places: dict[str, int] = {}
        """What was told last of each queue in which the bot waits."""
        self.to_note: list[SeatOf] = []
        """Seats that were offered, which the store has to know as soon as they are handed over."""
        self.off: dict[str, pb.TakenOff] = {}
        """What the bot was told of the queues and ladders that it is off."""
        self._unread: asyncio.Queue[pb.AttendResponse | None] = asyncio.Queue(MOST_UNREAD)
        self._ending: Refusal | None = None
        self._is_ending = False
        self._writer: asyncio.Task[object] | None = None

    def queue_response(self, response: pb.AttendResponse) -> None:
        """Puts a response in; a bot that does not read loses its stream, not the lobby its memory."""
        try:
            self._unread.put_nowait(response)
        except asyncio.QueueFull:
            self.end(Refusal("SLOW_READER", f"{MOST_UNREAD} responses were left unread"))

    def queue_offer(self, offer: pb.SeatOffer) -> None:
        """Offers a seat, unless this stream has told it already."""
        seat = (offer.match, offer.seat)
        if self.told.get(seat, 0) < offer.epoch:
            self.told[seat] = offer.epoch
            self.to_note.append(SeatOf(*seat))
            self.queue_response(pb.AttendResponse(offer=offer))

    @property
    def is_open(self) -> bool:
        """Whether what is told is handed over: the stream has a writer, which waits for nothing but the bot's reading."""
        return self._writer is not None and not self._is_ending

    @property
    def was_ended_by_us(self) -> bool:
        """Whether the stream ends for a reason that is not the bot's doing."""
        return self._ending is not None and self._ending.reason != "SLOW_READER"

    def close_seat(self, match: str, seat: int) -> None:
        """Tells that an offered seat is closed."""
        if self.told.pop((match, seat), None) is not None:
            self.queue_response(pb.AttendResponse(closed=pb.SeatClosed(match=match, seat=seat)))

    def wait_at(self, queue: str, place: int | None) -> None:
        """The bot stands there in the queue, or not any more; told when that is news."""
        if place is None:
            self.places.pop(queue, None)
        elif self.places.get(queue) != place:
            self.places[queue] = place
            self.queue_response(pb.AttendResponse(queued=pb.Queued(queue=queue, place=place)))

    def take_off(self, off: Iterable[pb.TakenOff]) -> None:
        """The bot is off these queues and ladders and no other; told when that is news."""
        before, self.off = self.off, {each.queue: each for each in off}
        for queue, taken_off in self.off.items():
            if before.get(queue) != taken_off:
                self.queue_response(pb.AttendResponse(taken_off=taken_off))

    def end(self, why: Refusal | None) -> None:
        """Ends the stream, when what was told is written, if that is read soon."""
        if not self._is_ending:
            self._is_ending, self._ending = True, why
            if self._unread.full():
                self._unread.get_nowait()
            self._unread.put_nowait(None)
            asyncio.get_running_loop().call_later(LAST_WORD_S, self._stop_writing)

    def _stop_writing(self) -> None:
        if self._writer:
            self._writer.cancel()

    async def write_all(self, write: Callable[[pb.AttendResponse], Awaitable[object]]) -> Refusal | None:
        """Writes what is told until the stream is to end; says why it ends. The only writer."""
        self._writer = asyncio.current_task()
        try:
            while response := await self._unread.get():
                await write(response)
        except asyncio.CancelledError:
            if not self._is_ending:
                raise
        finally:
            self._writer = None
        return self._ending
