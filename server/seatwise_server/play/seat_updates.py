"""The messages to the seats of one match: the effects of its commands, and the updates of its streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.effects import AcceptMove, Effect, EndMatch, RejectRequest, ShowChange, ShowView, WakeAt
from seatwise_referee.game import Seat
from seatwise_referee.match import Match
from seatwise_referee.position import Position
from seatwise_server.play import play_messages
from seatwise_server.play.match_clock import MatchClock
from seatwise_server.play.outbox import Outbox
from seatwise_server.play.receipts import Receipts
from seatwise_server.play.seat_links import SeatLinks
from seatwise_server.play.standstills import Standstills


class SeatUpdates:
    """The messages to the seats of one match; an `UpdateSource` for the writers of their streams."""

    __slots__ = (
        "_clock",
        "_ended",
        "_log",
        "_on_finished",
        "_standstills",
        "links",
        "match",
        "receipts",
    )

    def __init__(
        self,
        match: Match,
        epoch: int,
        clock: MatchClock,
        standstills: Standstills,
        written: Sequence[bytes],
        on_finished: Callable[[], None],
    ) -> None:
        """`written` is the journal so far; `on_finished` is called when the match is over."""
        self.match = match
        """The match of the table; the table replaces both at once."""
        self.links = SeatLinks(self, match.setup.match, len(match.setup.bots), epoch)
        self._clock = clock
        self._standstills = standstills
        self.receipts = Receipts(play_messages.receipt_key(match.setup.seed), written, match.position.seq)
        self._on_finished = on_finished
        self._ended: pb.MatchEnded | None = None
        self._log = structlog.get_logger().bind(match=match.setup.match, epoch=epoch)

    # Called by the writer of a stream

    @property
    def needs_proof(self) -> bool:
        """See `UpdateSource`: in a race that counts, milliseconds decide."""
        prompt = self.match.position.prompt
        return bool(self.match.setup.competition) and prompt is not None and prompt.race

    def encode_update(self, seat: int) -> tuple[bytes, int]:
        """See `UpdateSource`."""
        told = self.match.update_for(Seat(seat), self._clock.now_ms)
        receipt = self.receipts.receipt_of(told.seen_seq)
        item = play_messages.encode_update(self.links.links[seat].head, self.match.setup.game, told, receipt)
        return item, told.prompt if told.to_act else 0

    def on_prompt_delivered(self, seat: int, prompt: int, allowance_ms: int | None) -> None:
        """See `UpdateSource`."""
        self._standstills.note_sent(prompt)
        self.perform_effects(self.match.note_delivery(Seat(seat), prompt, self._clock.now_ms, allowance_ms))

    def on_round_trip(self, seat: int, allowance_ms: int) -> None:
        """See `UpdateSource`."""
        self.perform_effects(self.match.note_allowance(Seat(seat), allowance_ms))

    def drop_link(self, seat: int, outbox: Outbox) -> None:
        """Handles the loss of a bot's stream. The clock of the bot runs on, unless the loss was our fault."""
        if self.links.unlink_seat(seat, outbox):
            if self._standstills.broke_links():
                self.match.await_return(Seat(seat), self._clock.now_ms)
            else:
                self._start_clock_of_absent(seat)

    # Called by the table

    def perform_effects(self, effects: list[Effect]) -> None:
        """Performs effects in their order. The most frequent ones come first; `isinstance` is quicker than patterns."""
        for effect in effects:
            if isinstance(effect, AcceptMove):
                self._send_acceptance(effect)
            elif isinstance(effect, ShowView):
                self.show_view(effect.seat)
            elif isinstance(effect, WakeAt):
                self._clock.set_timer(effect.at_ms)
            elif isinstance(effect, RejectRequest):
                self._log.debug("move_rejected", seat=effect.seat, reason=str(effect.reason))
                self.send_rejection(effect.seat, effect.request_id, str(effect.reason), effect.message)
            elif isinstance(effect, ShowChange):
                self.links.show_change(effect.seats)
            elif isinstance(effect, EndMatch):
                self._clock.stop_timer()
                self._on_finished()

    def show_view(self, seat: int) -> None:
        """Shows the seat its view at once. The clock of a seat that is not connected starts without it."""
        if not self.links.mark_view_due(seat):
            self._start_clock_of_absent(seat)

    def show_news(self, before: Position) -> None:
        """Shows every change to the bots that want it, except rejections of other seats: a view without a
        change would reveal them.
        """
        for seat in self.links.seats_shown_every_change():
            is_news = self.match.position.seen_seq(Seat(seat)) > before.seen_seq(Seat(seat))
            if is_news:
                self.links.show_change([seat])

    def send_rejection(self, seat: int, request_id: str, reason: str, message: str) -> None:
        """Tells the seat at once that its request was rejected."""
        self.links.send_rejection(seat, request_id, reason, message)

    def announce_end(self, end: pb.MatchEnded) -> None:
        """Tells all bots that sit here, or will, that the match is over. A second call does nothing."""
        if self._ended:
            return
        self._ended = end
        for seat in range(len(self.links.links)):
            self.repeat_end(seat)

    def repeat_end(self, seat: int) -> bool:
        """Tells a seat that was linked again that the match is over; returns False if that is not announced yet."""
        if self._ended is None:
            return False
        self.links.send_end(seat, self._ended, self.receipts.receipt_of(self.match.position.seq))
        return True

    def forget_seats(self) -> None:
        """Unlinks all streams; messages that are due are still sent if the end was announced."""
        self.links.forget_seats(may_show=self._ended is not None)

    def _send_acceptance(self, it: AcceptMove) -> None:
        seen_seq = self.match.position.seen_seq(it.seat)
        receipt = self.receipts.receipt_of(seen_seq)
        self.links.send_acceptance(it.seat, it.request_id, it.charged_ms, receipt)

    def _start_clock_of_absent(self, seat: int) -> None:
        """Starts the clock of a seat that is not connected as soon as its prompt is open."""
        prompt = self.match.position.prompt
        if prompt and seat in prompt.seats:
            self.on_prompt_delivered(seat, prompt.number, 0)
