"""The presence of one bot: the messages that the lobby has for it, and the limit that the bot has set."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_server.refusal import REFUSAL_DELIVERY_S, Refusal
from seatwise_server.store import SeatOf
from seatwise_server.streams import StreamArrival, note_arrival_of_stream

FIRST_REQUEST_S = 10.0
"""Seconds that a stream may stay open without a first request."""

MOST_UNREAD = 1024
"""The most responses that a bot may leave unread before its stream is ended."""


class AttendanceStream:
    """The lobby's side of one Attend stream."""

    def __init__(
        self, bot: str, queues: tuple[str, ...], max_matches: int, arrival: StreamArrival | None = None
    ) -> None:
        """`arrival` is when the call came; None means that it comes now."""
        self.bot = bot
        self.arrival = arrival or note_arrival_of_stream()
        self.attend_id = secrets.token_hex(8)
        self.turn = 0
        """The number of this stream among all streams of the bot, by their arrival; the store assigns it."""
        self.is_written = False
        """Whether the store knows this attendance, so that notices of the store may concern it."""
        self.queues = queues
        self.owner = ""
        """The owner of the bot, if it has quotas. The lobby knows it when the attendance begins."""
        self.most_matches = max_matches
        """The most that the server applies, whatever the bot asks for. The lobby knows it when the attendance begins."""
        self.max_matches = max_matches
        self.told: dict[tuple[str, int], int] = {}
        """The epoch of the last offer of each open seat."""
        self.pending_seats = 0
        """The number of seats, in the last welcome, whose offers follow."""
        self.looking = asyncio.Lock()
        """Held from the reading of the bot's offers until they are queued."""
        self.places: dict[str, int] = {}
        """The last place that the bot was told in each queue in which it waits."""
        self.to_note: list[SeatOf] = []
        """Offered seats that the store must know of as soon as the offers are delivered."""
        self.off: dict[str, pb.TakenOff] = {}
        """The last message for each queue and ladder that the bot is off."""
        self._unread: asyncio.Queue[pb.AttendResponse | None] = asyncio.Queue(MOST_UNREAD)
        self.is_ending = False
        """Whether the stream is to end."""
        self._ending: Refusal | None = None
        self._writer: asyncio.Task[object] | None = None

    def queue_response(self, response: pb.AttendResponse) -> None:
        """Queue a response. A bot that does not read loses its stream, so that the memory of the lobby is bounded."""
        try:
            self._unread.put_nowait(response)
        except asyncio.QueueFull:
            self.end(Refusal("SLOW_READER", f"{MOST_UNREAD} responses were left unread"))

    def confirm_limit(self, pending_seats: int = 0) -> None:
        """Queue a welcome with the limit, and with the number of seats whose offers follow."""
        self.pending_seats = pending_seats
        welcome = pb.Welcome(bot=self.bot, max_matches=self.max_matches, pending_seats=pending_seats)
        self.queue_response(pb.AttendResponse(welcome=welcome))

    def queue_offer(self, offer: pb.SeatOffer) -> None:
        """Queue an offer, unless this stream has already told it."""
        seat = (offer.match, offer.seat)
        if self.told.get(seat, 0) < offer.epoch:
            self.told[seat] = offer.epoch
            self.to_note.append(SeatOf(*seat))
            self.queue_response(pb.AttendResponse(offer=offer))

    @property
    def is_open(self) -> bool:
        """Whether responses are delivered: the stream has a writer, which only waits for the bot to read."""
        return self._writer is not None and not self.is_ending

    @property
    def was_ended_by_us(self) -> bool:
        """Whether the server ends the stream for a reason that the bot did not cause."""
        return self._ending is not None and self._ending.reason != "SLOW_READER"

    def close_seat(self, match: str, seat: int) -> None:
        """Queue the notice that an offered seat is closed."""
        if self.told.pop((match, seat), None) is not None:
            self.queue_response(pb.AttendResponse(closed=pb.SeatClosed(match=match, seat=seat)))

    def wait_at(self, queue: str, place: int | None) -> None:
        """Record the bot's place in the queue, None if it does not wait there; tells the bot if it has changed."""
        if place is None:
            self.places.pop(queue, None)
        elif self.places.get(queue) != place:
            self.places[queue] = place
            self.queue_response(pb.AttendResponse(queued=pb.Queued(queue=queue, place=place)))

    def take_off(self, off: Iterable[pb.TakenOff]) -> None:
        """Record the queues and ladders that the bot is off; `off` has all of them. Tells the bot about each that is new."""
        before, self.off = self.off, {each.queue: each for each in off}
        for queue, taken_off in self.off.items():
            if before.get(queue) != taken_off:
                self.queue_response(pb.AttendResponse(taken_off=taken_off))

    def end(self, why: Refusal | None) -> None:
        """End the stream after the queued responses were written, or after `REFUSAL_DELIVERY_S`."""
        if not self.is_ending:
            self.is_ending, self._ending = True, why
            if self._unread.full():
                self._unread.get_nowait()
            self._unread.put_nowait(None)
            asyncio.get_running_loop().call_later(REFUSAL_DELIVERY_S, self._stop_writing)

    def _stop_writing(self) -> None:
        if self._writer:
            self._writer.cancel()

    async def write_all(self, write: Callable[[pb.AttendResponse], Awaitable[object]]) -> Refusal | None:
        """Write queued responses until the stream is to end, and return the reason for its end. The only writer of the stream."""
        self._writer = asyncio.current_task()
        try:
            while response := await self._unread.get():
                await write(response)
        except asyncio.CancelledError:
            if not self.is_ending:
                raise
        finally:
            self._writer = None
        return self._ending


def first_request_refusal() -> Refusal:
    """Return why a stream ends whose first request did not come in time. The bot may come again: the delay may be ours."""
    late = f"send a first request that names queues and max_matches, within {FIRST_REQUEST_S:.0f} s"
    return Refusal("STREAM_TIMEOUT", late)
