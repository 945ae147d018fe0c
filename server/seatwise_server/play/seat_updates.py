"""The messages to the seats of one match: the effects of its commands, the updates of its streams, and receipts."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import structlog

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.decision import (
    AcceptMove,
    Effect,
    EndMatch,
    RejectRequest,
    ShowChange,
    ShowView,
    WakeAt,
)
from seatwise_referee.game import Seat
from seatwise_referee.match import Match
from seatwise_referee.position import Position
from seatwise_server.play import play_messages
from seatwise_server.play.match_clock import MatchClock
from seatwise_server.play.outbox import Outbox

MARK_BYTES: Final = 8
SEAL_BYTES: Final = 8

_REJECTED_ENTRY = b'"kind":"rejected"'
"""Part of an entry that only one seat may know of. No text in an entry can contain it, because its quotes would be escaped."""


@dataclass(slots=True)
class SeatLink:
    """One seat, and the stream through which its bot sits there. Messages for a seat without a stream are dropped."""

    head: bytes
    """The bytes with which each item of this seat begins."""
    outbox: Outbox | None = None
    every_change: bool = False
    """Whether the bot wants to be shown every change, and not only its prompts."""


class SeatUpdates:
    """The messages to the seats of one match; an `UpdateSource` for the writers of their streams."""

    __slots__ = ("_clock", "_ended", "_links", "_log", "_on_finished", "match", "receipts")

    def __init__(
        self,
        match: Match,
        epoch: int,
        clock: MatchClock,
        written: Sequence[bytes],
        on_finished: Callable[[], None],
    ) -> None:
        """`written` is the journal so far; `on_finished` is called when the match is over."""
        self.match = match
        """The match of the table; the table replaces both at once."""
        heads = [
            play_messages.encode_head(match.setup.match, seat, epoch) for seat in range(len(match.setup.bots))
        ]
        self._links = [SeatLink(head) for head in heads]
        self._clock = clock
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
        item = play_messages.encode_update(self._links[seat].head, self.match.setup.game, told, receipt)
        return item, told.prompt if told.to_act else 0

    def on_prompt_delivered(self, seat: int, prompt: int, allowance_ms: int | None) -> None:
        """See `UpdateSource`."""
        now = self._clock.now
        self._clock.note_sent(prompt, now)
        now_ms = self._clock.ms_at(now)
        self.perform_effects(self.match.note_delivery(Seat(seat), prompt, now_ms, allowance_ms))

    def on_round_trip(self, seat: int, allowance_ms: int) -> None:
        """See `UpdateSource`."""
        self.perform_effects(self.match.note_allowance(Seat(seat), allowance_ms))

    def drop_link(self, seat: int, outbox: Outbox) -> None:
        """Handle the loss of a bot's stream. The clock of the bot runs on, unless the loss was our fault."""
        link = self._links[seat]
        if link.outbox is not outbox:  # the bot sits there through another stream
            return
        link.outbox = None
        if outbox.is_cut or self._clock.broke_links():
            self.match.await_return(Seat(seat), self._clock.now_ms)
        else:
            if self._clock.is_short:
                self.match.await_room(Seat(seat), self._clock.now_ms)
            self._start_clock_of_absent(seat)

    # Called by the table

    def is_linked_by(self, seat: int, outbox: Outbox) -> bool:
        """Whether the seat's bot sits there through this stream."""
        return self._links[seat].outbox is outbox

    def link_seat(self, seat: int, outbox: Outbox, every_change: bool) -> None:
        """Link the seat to this stream, in place of any other."""
        link = self._links[seat]
        link.outbox, link.every_change = outbox, every_change
        outbox.seats[self, seat] = None

    def seats_without_link(self) -> Iterator[int]:
        """List the seats without a stream."""
        return (seat for seat, link in enumerate(self._links) if link.outbox is None)

    def perform_effects(self, effects: list[Effect]) -> None:
        """Perform effects in their order, but for entries. The most frequent come first; `isinstance` is quicker than patterns."""
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
                self._show_change(effect.seats)
            elif isinstance(effect, EndMatch):
                self._clock.stop_timer()
                self._on_finished()

    def show_view(self, seat: int) -> None:
        """Show the seat its view at once. The clock of a seat that is not connected starts without it."""
        outbox = self._links[seat].outbox
        if outbox is None:
            self._start_clock_of_absent(seat)
        else:
            outbox.mark_view_due(self, seat, at_once=True)

    def show_news(self, before: Position) -> None:
        """Show every change to the bots that want it, but no rejection of another seat: a view without a change would reveal it."""
        after = self.match.position
        for seat, link in enumerate(self._links):
            if link.every_change and link.outbox and after.seen_seq(Seat(seat)) > before.seen_seq(Seat(seat)):
                link.outbox.mark_view_due(self, seat, at_once=False)

    def _show_change(self, seats: Iterable[int]) -> None:
        """Have a change shown to those of these seats whose bots want every change."""
        for seat in seats:
            link = self._links[seat]
            if link.every_change and link.outbox:
                link.outbox.mark_view_due(self, seat, at_once=False)

    def send_rejection(self, seat: int, request_id: str, reason: str, message: str) -> None:
        """Tell the seat at once that its request was rejected."""
        link = self._links[seat]
        if link.outbox:
            item = play_messages.encode_rejected(link.head, request_id, reason, message)
            link.outbox.add_answer(item, at_once=True)

    def _send_acceptance(self, it: AcceptMove) -> None:
        """Tell the seat, with its next message, that its move was accepted."""
        link = self._links[it.seat]
        if link.outbox:
            receipt = self.receipts.receipt_of(self.match.position.seen_seq(it.seat))
            item = play_messages.encode_accepted(link.head, it.request_id, it.charged_ms, receipt)
            link.outbox.add_answer(item, at_once=False)

    def announce_end(self, end: pb.MatchEnded) -> None:
        """Tell all bots that sit here, or will, that the match is over. A second call does nothing."""
        if self._ended:
            return
        self._ended = end
        for seat in range(len(self._links)):
            self.repeat_end(seat)

    def repeat_end(self, seat: int) -> bool:
        """Tell a seat that was linked again that the match is over; returns False if that is not announced yet."""
        if self._ended is None:
            return False
        link = self._links[seat]
        if link.outbox:
            receipt = self.receipts.receipt_of(self.match.position.seq)
            item = play_messages.encode_ended(link.head, self._ended, receipt)
            link.outbox.add_match_end(self, seat, item)
        return True

    def close_updates(self) -> None:
        """Unlink all streams, and forget the table. Messages that are due are still sent if the end was announced."""
        self._on_finished = lambda: None
        for seat, link in enumerate(self._links):
            if link.outbox:
                link.outbox.forget_seat(self, seat, may_show=self._ended is not None)

    def _start_clock_of_absent(self, seat: int) -> None:
        """Start the clock of a seat that is not connected as soon as its prompt is open."""
        prompt = self.match.position.prompt
        if prompt and seat in prompt.seats:
            self.on_prompt_delivered(seat, prompt.number, 0)


class Receipts:
    """The receipts of one match, as one owner has them: they prove that its journal has lost entries that a bot was told of.

    Each entry has a mark: a keyed hash of the entry and of all earlier entries that every seat may know of. A
    receipt is the mark of the last entry that a seat may know of, with a seal that requires the match's key. So a
    receipt with a valid seal, whose mark is not in the journal, belongs to an entry that once existed. The number
    of the entry would prove less: lost entries are replaced by others, at least by the one about the takeover.
    """

    __slots__ = ("_behind", "_key", "_last", "_marks", "_public")

    def __init__(self, key: bytes, journal: Iterable[bytes] = (), seq: int = 0) -> None:
        self._key = key
        self._marks = bytearray(MARK_BYTES)
        """All marks, one after the other; the first one belongs to no entry."""
        self._public = bytes(MARK_BYTES)
        """The mark of the last entry that every seat may know of."""
        for entry in journal:
            self.add_entry(entry, is_public=_REJECTED_ENTRY not in entry)
        self._behind = max(0, seq + 1 - len(self._marks) // MARK_BYTES)
        """The number of entries up to `seq` that are not known: 0, unless the receipts begin in the middle of a match."""
        self._last = (-1, b"")
        """The entry and the bytes of the last receipt, because several seats need the receipt of the same move."""

    def add_entry(self, entry: bytes, *, is_public: bool) -> None:
        """Add the next entry of the journal; `is_public` says whether every seat may know of it."""
        mark = blake2b(self._public + entry, key=self._key, digest_size=MARK_BYTES).digest()
        self._marks += mark
        if is_public:
            self._public = mark

    def receipt_of(self, seq: int) -> bytes:
        """Return a proof that entry `seq` was in the journal. It reveals nothing else, not even the number."""
        if self._last[0] != seq:
            at = max(0, seq - self._behind) * MARK_BYTES
            mark = bytes(self._marks[at : at + MARK_BYTES])
            self._last = (seq, mark + self._seal_mark(mark))
        return self._last[1]

    def prove_loss(self, receipt: bytes) -> bool:
        """Whether the receipt is of an entry that is not in the journal (any more); False for a receipt with a wrong seal."""
        mark, seal = receipt[:MARK_BYTES], receipt[MARK_BYTES:]
        return hmac.compare_digest(seal, self._seal_mark(mark)) and not self._has_mark(mark)

    def _seal_mark(self, mark: bytes) -> bytes:
        return blake2b(mark, key=self._key, digest_size=SEAL_BYTES, person=b"seal").digest()

    def _has_mark(self, mark: bytes) -> bool:
        at = self._marks.rfind(mark)
        while at > 0 and at % MARK_BYTES:
            at = self._marks.rfind(mark, 0, at + MARK_BYTES - 1)
        return at >= 0
