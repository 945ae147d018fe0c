"""One match at this referee: the shell around `Match`.

A table is an actor without a task of its own. Its commands go through one queue (`command_queue.py`): nobody is
told of anything before the journal has it. All methods are called on the event loop and none of them waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any

import structlog

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.effects import AcceptMove, Effect, EndMatch, RejectRequest, ShowChange, ShowView, WakeAt
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.match import Match
from seatwise_referee.position import Position
from seatwise_server.play import play_messages
from seatwise_server.play.command_queue import MOST_WAITING_COMMANDS, Command, CommandQueue, MatchJournal
from seatwise_server.play.lag import EventLoopLag
from seatwise_server.play.outbox import Outbox
from seatwise_server.play.receipts import Receipts
from seatwise_server.play.seat_links import SeatLinks
from seatwise_server.store.group_commit.writer import AppendResult

TIMER_MARGIN_MS = 0.1
"""Timers are set this much later: floats and the loop round, and a timer that is early rings again at once."""

log = structlog.get_logger()


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
        self._is_stopping = False
        """It takes nothing more, and waits for the journal's last answer."""
        self._lag = lag
        self._on_end = on_end
        self._on_deal = on_deal
        self._on_sit = on_sit
        self._loop = asyncio.get_running_loop()
        self._opened_s = self._loop.time() - match.position.at_ms / 1000
        self._stalled_s = lag.note_stall(self._loop.time())
        self._timer: asyncio.TimerHandle | None = None
        self._ended: pb.MatchEnded | None = None
        self._receipts = Receipts(play_messages.receipt_key(match.setup.seed), written, match.position.seq)
        seats = len(match.setup.bots)
        self._queue = CommandQueue(self, journal, seats)
        self._links = SeatLinks(self, self.name, seats, epoch)
        self._log = log.bind(match=self.name, epoch=epoch)

    # From the bots

    def is_seat_of(self, bot: str, seat: int) -> bool:
        """Whether the bot plays this seat."""
        bots = self.match.setup.bots
        return 0 <= seat < len(bots) and bots[seat] == bot

    def sits_through(self, seat: int, outbox: Outbox) -> bool:
        """Whether the seat's bot sits there through this stream."""
        return self._links.is_linked_by(seat, outbox)

    def sit_down(
        self, seat: int, nonce: bytes, every_change: bool, outbox: Outbox, at: float, receipt: bytes = b""
    ) -> None:
        """The bot sits down, or down again through another stream."""
        if receipt and self._receipts.prove_loss(receipt):
            self._log.error("journal_lost", seat=seat, seq=self.match.position.seq)
            self.void_match(VoidReason.JOURNAL_LOST)
        self._links.link_seat(seat, outbox, every_change)
        if self._ended:
            self._links.send_end(seat, self._ended)
        elif self.match.position.seats[seat].has_sat:
            self.perform_effects(self.match.note_return(Seat(seat), self._match_ms(at)))
            self._show_view(seat)
        elif self._has_room(seat, ""):
            self._queue.add_command(seat, lambda now: self.match.sit(Seat(seat), nonce or None, now), at)

    def submit_move(self, seat: int, prompt: int, request_id: str, move: Any, at: float) -> None:
        """The bot answers a prompt; `at` is when the answer came."""
        if self._has_room(seat, request_id):
            self._queue.add_command(
                seat, lambda now: self.match.submit_move(Seat(seat), prompt, request_id, move, now), at
            )

    def resign_seat(self, seat: int, at: float) -> None:
        """The bot gives up."""
        if self._has_room(seat, ""):
            self._queue.add_command(seat, lambda now: self.match.resign(Seat(seat), now), at)

    def drop_link(self, seat: int, outbox: Outbox) -> None:
        """The stream through which the bot sat is gone. Its clock runs on, unless that is our doing."""
        if self._links.unlink_seat(seat, outbox):
            if self._lag.broke_links():
                self.match.await_return(Seat(seat), self._match_ms(self._loop.time()))
            else:
                self._start_clock_of_absent(seat)

    # From the writer of a stream

    def encode_update(self, seat: int) -> tuple[bytes, int]:
        """See `UpdateSource`."""
        told = self.match.update_for(Seat(seat), self._match_ms(self._loop.time()))
        receipt = self._receipts.receipt_of(told.seen_seq)
        item = play_messages.encode_update(self._links.links[seat].head, self.match.setup.game, told, receipt)
        return item, told.prompt if told.to_act else 0

    def on_prompt_delivered(self, seat: int, prompt: int, allowance_ms: int | None) -> None:
        """See `UpdateSource`."""
        self.perform_effects(
            self.match.note_delivery(Seat(seat), prompt, self._match_ms(self._loop.time()), allowance_ms)
        )

    def on_round_trip(self, seat: int, allowance_ms: int) -> None:
        """See `UpdateSource`."""
        self.perform_effects(self.match.note_allowance(Seat(seat), allowance_ms))

    # From the house

    def start_clocks(self) -> None:
        """Starts the clocks; after a takeover the journal says so first."""
        if self.match.is_over:
            self._on_end(self)
        elif self.epoch > 1:
            self._queue.add_command(None, self._take_over_effects, self._loop.time())
        else:
            self._on_timer()

    def _take_over_effects(self, now: int) -> list[Effect]:
        away = [Seat(seat) for seat in self._links.seats_without_link()]
        return self.match.take_over(self.epoch, now, away)

    @property
    def awaited_bots(self) -> list[str]:
        """Bots that have yet to sit down here."""
        return [self.match.setup.bots[seat] for seat in sorted(self.match.awaited_seats)]

    def wait_for_bots(self, bots: Collection[str], ms: int) -> None:
        """In the last `ms` nobody could tell these bots to sit down here."""
        seats = [Seat(seat) for seat, bot in enumerate(self.match.setup.bots) if bot in bots]
        if not self.is_closed and not self.match.is_over:
            self._queue.add_command(
                None, lambda now: self.match.note_unreachable(seats, ms, now), self._loop.time()
            )

    def void_match(self, reason: VoidReason) -> None:
        """Ends the match; it counts for nobody."""
        self._queue.add_command(None, lambda now: self.match.void_match(reason, now), self._loop.time())

    def resume_after_gap(self, gap_s: float) -> None:
        """The store is back after a gap: nobody is charged for it."""
        if self.is_closed or self._is_stopping:
            return
        gap_ms = int(gap_s * 1000)
        # Before the answers that came meanwhile: they are not late for it.
        self._queue.put_first(lambda now: self._note_standstill(gap_ms, "STORE", now))
        self._on_timer()

    def announce_end(self, end: pb.MatchEnded) -> None:
        """Tells all who sit here, or will, that the match is over."""
        self._ended = end
        for seat in range(len(self._links.links)):
            self._links.send_end(seat, end)

    def lose_ownership(self, answer: AppendResult) -> None:
        """The match is another's, or Redis has forgotten that it is ours."""
        self._log.warning("match_fenced", answer=answer.name)
        self.is_fenced, self.is_forgotten = True, answer is AppendResult.LOST
        self.close_table()
        self._on_end(self)

    def stop_accepting(self) -> None:
        """Takes nothing more, and lets go of the match as soon as the journal has answered."""
        self._is_stopping = True
        self._queue.close_queue()
        if not self._queue.is_writing:
            self.close_table()

    def close_table(self) -> None:
        """Lets go of the match: from now on this table does nothing."""
        self.is_closed = True
        self._queue.forget_journal()
        if self._timer:
            self._timer.cancel()
        self._links.forget_seats(may_show=self._ended is not None)

    # Commands, one after the other

    def _match_ms(self, at: float) -> int:
        return max(0, int((at - self._opened_s) * 1000))

    def _has_room(self, seat: int, request_id: str) -> bool:
        """Whether one more command of this seat may wait; if not, the seat is told."""
        if self._queue.has_room(seat):
            return True
        message = f"more than {MOST_WAITING_COMMANDS} of this seat are waiting"
        self._send_rejection(seat, request_id, "TOO_MANY", message)
        return False

    # From the queue of commands

    def decide(self, command: Command, at: float) -> list[Effect]:
        """Returns the effects of a command. An error of ours voids this match, and harms no other."""
        now = self._match_ms(at)
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
        return self._note_standstill(int(stalled_s * 1000), "STALL", self._match_ms(self._lag.stalled_until))

    def _note_standstill(self, ms: int, why: str, now: int) -> list[Effect]:
        """Tell the match, of a standstill that began before the match was opened only the rest."""
        return self.match.note_standstill(min(ms, now), why, now)

    def on_kept(self, effects: list[Effect], entries: Sequence[bytes]) -> None:
        """The journal has these entries: performs their effects, and shows what they have changed."""
        for entry in entries:
            self._receipts.add_entry(entry)
        before = self.match.position
        wake = self.match.confirm_entries(self._match_ms(self._loop.time()))
        self.perform_effects([*effects, *wake])
        if before.state is None:
            self._report_set_up(before)
        self._show_news(before)
        if self._is_stopping and not self.match.is_over:
            self.close_table()

    def _report_set_up(self, before: Position) -> None:
        """Reports which seats were taken, each once, and that the cards are dealt."""
        position = self.match.position
        if self._on_sit:
            for seat, own in enumerate(position.seats):
                if own.has_sat and not before.seats[seat].has_sat:
                    self._on_sit(self, seat)
        if position.state is not None:
            self._on_deal(self)

    def perform_effects(self, effects: list[Effect]) -> None:
        """Performs effects in their order. Those of every move come first: `isinstance` is quicker than patterns."""
        for effect in effects:
            if isinstance(effect, AcceptMove):
                self._send_acceptance(effect)
            elif isinstance(effect, ShowView):
                self._show_view(effect.seat)
            elif isinstance(effect, WakeAt):
                self._set_timer(effect.at_ms)
            elif isinstance(effect, RejectRequest):
                self._log.debug("move_rejected", seat=effect.seat, reason=str(effect.reason))
                self._send_rejection(effect.seat, effect.request_id, str(effect.reason), effect.message)
            elif isinstance(effect, ShowChange):
                self._links.show_change(effect.seats)
            elif isinstance(effect, EndMatch):
                self._on_finished()

    def _show_view(self, seat: int) -> None:
        if not self._links.mark_view_due(seat):
            self._start_clock_of_absent(seat)

    def _show_news(self, before: Position) -> None:
        """Shows every change to the bots that want it, but none of another's rejection: that would tell of it."""
        for seat in self._links.seats_shown_every_change():
            is_news = self.match.position.seen_seq(Seat(seat)) > before.seen_seq(Seat(seat))
            if is_news:
                self._links.show_change([seat])

    def _send_acceptance(self, it: AcceptMove) -> None:
        seen_seq = self.match.position.seen_seq(it.seat)
        receipt = self._receipts.receipt_of(seen_seq)
        self._links.send_acceptance(it.seat, it.request_id, it.charged_ms, receipt)

    def _send_rejection(self, seat: int, request_id: str, reason: str, message: str) -> None:
        self._links.send_rejection(seat, request_id, reason, message)

    def _on_finished(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._on_end(self)

    # Time

    def _start_clock_of_absent(self, seat: int) -> None:
        """Starts the clock of a seat that is not connected as soon as its prompt is open."""
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
        """Time has passed. While the store is away nobody's time runs out: `resume_after_gap` comes first."""
        self._timer = None
        if not self.is_closed and not self._queue.is_writing:
            self._queue.add_command(None, lambda now: self.match.tick(now), self._loop.time())
