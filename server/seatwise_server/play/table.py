"""One match at this referee: the shell around `Match`.

A table is an actor without a task of its own. Commands go through one inbox; while the journal has
not answered for one command, the next ones wait. Nothing is told to anybody before the journal has
it. All methods are called on the event loop and none of them waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.effects import (
    AcceptMove,
    Effect,
    EndMatch,
    RejectRequest,
    ShowChange,
    ShowView,
    WakeAt,
    WriteEntry,
)
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import encode
from seatwise_referee.match import Match
from seatwise_referee.position import Position
from seatwise_server.counts import COUNTS
from seatwise_server.play import play_messages
from seatwise_server.play.lag import EventLoopLag
from seatwise_server.play.outbox import Outbox
from seatwise_server.play.receipts import Receipts
from seatwise_server.store.group_commit.writer import AppendResult

MOST_WAITING_COMMANDS = 8
"""Commands of one seat that may wait in the inbox."""

TIMER_MARGIN_MS = 0.1
"""Timers are set this much later: floats and the loop round, and a timer that is early rings again at once."""

LINK_LOSS_NOTICED_S = 2.0
"""So long after a stall that breaks links the last of them is noticed."""

log = structlog.get_logger()


class MatchJournal(Protocol):
    """Where entries go; see `store.flusher.Flusher`."""

    @property
    def healthy(self) -> bool:
        """Whether the store answers."""
        ...

    def append_entries(
        self,
        match: str,
        epoch: int,
        owner: str,
        first_seq: int,
        entries: list[bytes],
        done: Callable[[AppendResult], None],
    ) -> None:
        """Queues the entries; `done` is called once, on the loop."""
        ...


@dataclass(slots=True)
class SeatLink:
    """One seat, and the stream through which its bot sits there."""

    head: bytes
    outbox: Outbox | None = None
    every_change: bool = False
    waiting: int = 0


class Table:
    """The owner's side of one match."""

    def __init__(
        self,
        match: Match,
        epoch: int,
        owner: str,
        journal: MatchJournal,
        lag: EventLoopLag,
        on_end: Callable[[Table], None],
        on_deal: Callable[[Table], None],
        written: Sequence[bytes] = (),
        on_sit: Callable[[Table, int], None] | None = None,
    ) -> None:
        self.match = match
        self.name = match.setup.match
        self.epoch = epoch
        self.owner = owner
        self.is_closed = False
        self.is_fenced = False
        """Another referee owns the match."""
        self.is_forgotten = False
        """Redis has forgotten that we own the match; we have not."""
        self._is_winding_up = False
        self._journal = journal
        self._lag = lag
        self._on_end = on_end
        self._on_deal = on_deal
        self._on_sit = on_sit
        self._loop = asyncio.get_running_loop()
        self._opened_s = self._loop.time() - match.position.at_ms / 1000
        self._stalled_s = lag.note_stall(self._loop.time())
        self._inbox: list[tuple[int | None, Callable[[int], list[Effect]], float]] = []
        """A list, for it is short and mostly empty: an empty deque takes 760 bytes, and there are many tables."""
        self._held_effects: list[Effect] | None = None
        self._asked_entries: list[bytes] = []
        """What the journal was asked to keep."""
        self._asked_s = 0.0
        """When the journal was asked for what it holds back."""
        self._timer: asyncio.TimerHandle | None = None
        self._ended: pb.MatchEnded | None = None
        self._receipts = Receipts(play_messages.receipt_key(match.setup.seed), written, match.position.seq)
        heads = (play_messages.encode_head(self.name, seat, epoch) for seat in range(len(match.setup.bots)))
        self._places = [SeatLink(head) for head in heads]
        self._log = log.bind(match=self.name, epoch=epoch)

    # From the bots

    def is_seat_of(self, bot: str, seat: int) -> bool:
        """Whether the bot plays this seat."""
        bots = self.match.setup.bots
        return 0 <= seat < len(bots) and bots[seat] == bot

    def sits_through(self, seat: int, outbox: Outbox) -> bool:
        """Whether the seat's bot sits there through this stream."""
        return self._places[seat].outbox is outbox

    def sit_down(
        self, seat: int, nonce: bytes, every_change: bool, outbox: Outbox, at: float, receipt: bytes = b""
    ) -> None:
        """The bot sits down, or down again through another stream."""
        place = self._places[seat]
        if receipt and self._receipts.prove_loss(receipt):
            self._log.error("journal_lost", seat=seat, seq=self.match.position.seq)
            self.void_match(VoidReason.JOURNAL_LOST)
        place.outbox, place.every_change = outbox, every_change
        outbox.seats[self, seat] = None
        if self._ended:
            outbox.add_match_end(self, seat, play_messages.encode_ended(place.head, self._ended))
        elif self.match.position.seats[seat].has_sat:
            self._perform_effects(self.match.note_return(Seat(seat), self._match_ms(at)))
            self._show_view(seat)
        elif self._has_room(seat, ""):
            self._queue_command(seat, lambda now: self.match.sit(Seat(seat), nonce or None, now), at)

    def submit_move(self, seat: int, prompt: int, request_id: str, move: Any, at: float) -> None:
        """The bot answers a prompt; `at` is when the answer came."""
        if self._has_room(seat, request_id):
            self._queue_command(
                seat, lambda now: self.match.submit_move(Seat(seat), prompt, request_id, move, now), at
            )

    def resign_seat(self, seat: int, at: float) -> None:
        """The bot gives up."""
        if self._has_room(seat, ""):
            self._queue_command(seat, lambda now: self.match.resign(Seat(seat), now), at)

    def drop_link(self, seat: int, outbox: Outbox) -> None:
        """The stream through which the bot sat is gone. Its clock runs on, unless that is our doing."""
        place = self._places[seat]
        if place.outbox is outbox:
            place.outbox = None
            if self._broke_links():
                self.match.await_return(Seat(seat), self._match_ms(self._loop.time()))
            else:
                self._start_clock_of_absent(seat)

    def _broke_links(self) -> bool:
        """Whether links that are lost now were lost while we stood still."""
        now = self._loop.time()
        self._lag.note_stall(now)
        return now - self._lag.broke_at < LINK_LOSS_NOTICED_S

    # From the writer of a stream

    def encode_update(self, seat: int) -> tuple[bytes, int]:
        """See `outbox.Viewed`."""
        told = self.match.update_for(Seat(seat), self._match_ms(self._loop.time()))
        receipt = self._receipts.receipt_of(told.seen_seq)
        item = play_messages.encode_update(self._places[seat].head, self.match.setup.game, told, receipt)
        return item, told.prompt if told.to_act else 0

    def on_prompt_delivered(self, seat: int, prompt: int, allowance_ms: int | None) -> None:
        """See `outbox.Viewed`."""
        self._perform_effects(
            self.match.note_delivery(Seat(seat), prompt, self._match_ms(self._loop.time()), allowance_ms)
        )

    def on_round_trip(self, seat: int, allowance_ms: int) -> None:
        """See `outbox.Viewed`."""
        self._perform_effects(self.match.note_allowance(Seat(seat), allowance_ms))

    # From the house

    def start_clocks(self) -> None:
        """Starts the clocks; after a takeover the journal says so first."""
        if self.match.is_over:
            self._on_end(self)
        elif self.epoch > 1:
            self._queue_command(None, self._take_over_effects, self._loop.time())
        else:
            self._on_timer()

    def _take_over_effects(self, now: int) -> list[Effect]:
        away = [Seat(seat) for seat, place in enumerate(self._places) if place.outbox is None]
        return self.match.take_over(self.epoch, now, away)

    @property
    def awaited_bots(self) -> list[str]:
        """Bots that have yet to sit down here."""
        return [self.match.setup.bots[seat] for seat in sorted(self.match.awaited_seats)]

    def wait_for_bots(self, bots: Collection[str], ms: int) -> None:
        """In the last `ms` nobody could tell these bots to sit down here."""
        seats = [Seat(seat) for seat, bot in enumerate(self.match.setup.bots) if bot in bots]
        if not self.is_closed and not self.match.is_over:
            self._queue_command(
                None, lambda now: self.match.note_unreachable(seats, ms, now), self._loop.time()
            )

    def void_match(self, reason: VoidReason) -> None:
        """Ends the match; it counts for nobody."""
        self._queue_command(None, lambda now: self.match.void_match(reason, now), self._loop.time())

    def resume_after_gap(self, gap_s: float) -> None:
        """The store is back after a gap: nobody is charged for it."""
        if self.is_closed or self._is_winding_up:
            return
        gap_ms = int(gap_s * 1000)
        thaw = (None, lambda now: self.match.note_standstill(gap_ms, "STORE", now), self._loop.time())
        self._inbox.insert(0, thaw)  # before the answers that came meanwhile: they are not late for it
        self._run_commands()
        self._on_timer()

    def announce_end(self, end: pb.MatchEnded) -> None:
        """Tells all who sit here, or will, that the match is over."""
        self._ended = end
        for seat, place in enumerate(self._places):
            if place.outbox:
                place.outbox.add_match_end(self, seat, play_messages.encode_ended(place.head, end))

    def lose_ownership(self, answer: AppendResult) -> None:
        """The match is another's, or Redis has forgotten that it is ours."""
        self._log.warning("match_fenced", answer=answer.name)
        self.is_fenced, self.is_forgotten = True, answer is AppendResult.LOST
        self.close_table()
        self._on_end(self)

    def stop_accepting(self) -> None:
        """Takes nothing more, and lets go of the match as soon as the journal has answered."""
        self._is_winding_up = True
        self._inbox.clear()
        if self._held_effects is None:
            self.close_table()

    def close_table(self) -> None:
        """Lets go of the match: from now on this table does nothing."""
        self.is_closed = True
        self._inbox.clear()
        if self._timer:
            self._timer.cancel()
        for seat, place in enumerate(self._places):
            if place.outbox:
                place.outbox.forget_seat(self, seat, may_show=self._ended is not None)

    # Commands, one after the other

    def _match_ms(self, at: float) -> int:
        return max(0, int((at - self._opened_s) * 1000))

    def _has_room(self, seat: int, request_id: str) -> bool:
        """Whether one more command of this seat may wait; if not, the seat is told."""
        place = self._places[seat]
        if place.waiting < MOST_WAITING_COMMANDS:
            return True
        self._send_rejection(
            place, request_id, "TOO_MANY", f"more than {MOST_WAITING_COMMANDS} of this seat are waiting"
        )
        return False

    def _queue_command(self, seat: int | None, command: Callable[[int], list[Effect]], at: float) -> None:
        if self.is_closed or self._is_winding_up:
            return
        if seat is not None:
            self._places[seat].waiting += 1
        self._inbox.append((seat, command, at))
        self._run_commands()

    def _run_commands(self) -> None:
        """One command after the other. While the store is away they wait: `thaw` comes first."""
        while self._inbox and self._held_effects is None and not self.is_closed and self._journal.healthy:
            seat, command, at = self._inbox.pop(0)
            if seat is not None:
                self._places[seat].waiting -= 1
            self._append_effects(self._effects_of(command, self._match_ms(at)))

    def _effects_of(self, command: Callable[[int], list[Effect]], now: int) -> list[Effect]:
        """The outer edge of the rules: a fault of ours voids this match, and harms no other."""
        try:
            stalls = self._stall_effects()  # an entry of its own, and before what came meanwhile
            effects = command(now)
            return [*stalls, *effects] if stalls else effects
        except Exception:
            self._log.exception("match_failed")
            self.match = Match(self.match.setup, self.match.position)
            return self.match.void_match(VoidReason.UNPLAYABLE, now)

    def _stall_effects(self) -> list[Effect]:
        """What we stood still since the last command is charged to nobody, whenever that was."""
        now = self._loop.time()
        stalled_s, self._stalled_s = self._lag.note_stall(now) - self._stalled_s, self._lag.stalled_s
        self.match.note_lag(self._lag.recent_ms(now))
        if not stalled_s:
            return []
        return self.match.note_standstill(
            int(stalled_s * 1000), "STALL", self._match_ms(self._lag.stalled_until)
        )

    def _append_effects(self, effects: list[Effect]) -> None:
        entries = [effect.entry for effect in effects if isinstance(effect, WriteEntry)]
        if not entries:
            self._perform_effects(effects)
            return
        self._held_effects, self._asked_s = effects, self._loop.time()
        self._asked_entries = data = [encode(entry) for entry in entries]
        self._journal.append_entries(
            self.name, self.epoch, self.owner, entries[0].seq, data, self._on_appended
        )

    def _on_appended(self, answer: AppendResult) -> None:
        """The journal has answered: only now may anybody know."""
        if self.is_closed:
            return
        if not answer.is_kept:
            self.lose_ownership(answer)
            return
        effects, self._held_effects = self._held_effects or [], None
        for entry in self._asked_entries:
            self._receipts.add_entry(entry)
        self._count_entries(effects)
        before = self.match.position
        wake = self.match.confirm_entries(self._match_ms(self._loop.time()))
        self._perform_effects([*effects, *wake])
        if before.state is None:
            self._report_set_up(before)
        self._show_changes(before)
        if self._is_winding_up and not self.match.is_over:
            self.close_table()
        self._run_commands()

    def _report_set_up(self, before: Position) -> None:
        """Reports which seats were taken, each once, and that the cards are dealt."""
        position = self.match.position
        if self._on_sit:
            for seat, own in enumerate(position.seats):
                if own.has_sat and not before.seats[seat].has_sat:
                    self._on_sit(self, seat)
        if position.state is not None:
            self._on_deal(self)

    def _count_entries(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, WriteEntry):
                COUNTS.entry(effect.entry)
        COUNTS.appended(self._loop.time() - self._asked_s)

    def _perform_effects(self, effects: list[Effect]) -> None:
        """In their order, those first that come with every move: `isinstance` is quicker than patterns."""
        for effect in effects:
            if isinstance(effect, AcceptMove):
                self._send_acceptance(effect)
            elif isinstance(effect, ShowView):
                self._show_view(effect.seat)
            elif isinstance(effect, WakeAt):
                self._set_timer(effect.at_ms)
            elif isinstance(effect, RejectRequest):
                self._log.debug("move_rejected", seat=effect.seat, reason=str(effect.reason))
                self._send_rejection(
                    self._places[effect.seat], effect.request_id, str(effect.reason), effect.message
                )
            elif isinstance(effect, ShowChange):
                self._show_change(effect.seats)
            elif isinstance(effect, EndMatch):
                self._on_finished()

    def _show_view(self, seat: int) -> None:
        outbox = self._places[seat].outbox
        if outbox is None:
            self._start_clock_of_absent(seat)
        else:
            outbox.mark_view_due(self, seat, at_once=True)

    def _show_changes(self, before: Position) -> None:
        """To those who want it. Nobody is shown anything for another's rejection: that would tell of it."""
        for seat, place in enumerate(self._places):
            if place.every_change and place.outbox:
                is_news = self.match.position.seen_seq(Seat(seat)) > before.seen_seq(Seat(seat))
                if is_news:
                    place.outbox.mark_view_due(self, seat, at_once=False)

    def _show_change(self, seats: Iterable[int]) -> None:
        """What is not for the journal: in a race, what lies."""
        for seat in seats:
            place = self._places[seat]
            if place.every_change and place.outbox:
                place.outbox.mark_view_due(self, seat, at_once=False)

    def _send_acceptance(self, it: AcceptMove) -> None:
        place = self._places[it.seat]
        if place.outbox:
            seen_seq = self.match.position.seen_seq(it.seat)
            receipt = self._receipts.receipt_of(seen_seq)
            item = play_messages.encode_accepted(place.head, it.request_id, it.charged_ms, receipt)
            place.outbox.add_answer(item, at_once=False)

    def _send_rejection(self, place: SeatLink, request_id: str, reason: str, message: str) -> None:
        if place.outbox:
            item = play_messages.encode_rejected(place.head, request_id, reason, message)
            place.outbox.add_answer(item, at_once=True)

    def _on_finished(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._on_end(self)

    # Time

    def _start_clock_of_absent(self, seat: int) -> None:
        """The clock of a seat that is not connected runs from the put."""
        prompt = self.match.position.prompt
        if prompt and seat in prompt.seats:
            self.on_prompt_delivered(seat, prompt.number, 0)

    def _set_timer(self, at_ms: int | None) -> None:
        """One timer a table. Deadlines mostly move back, so a timer that is early enough stays."""
        if at_ms is None:
            return
        when = self._opened_s + (at_ms + TIMER_MARGIN_MS) / 1000
        if self._timer is None or self._timer.cancelled() or self._timer.when() > when:
            if self._timer:
                self._timer.cancel()
            self._timer = self._loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        """Time has passed. While the store is away nobody's time runs out: `thaw` comes first."""
        self._timer = None
        if not self.is_closed and self._held_effects is None:
            self._queue_command(None, lambda now: self.match.tick(now), self._loop.time())
