"""One match at this referee: the shell around `Match`.

A table is an actor without a task of its own. Its commands go through one queue (`command_queue.py`), so
nothing is sent before the journal has it. All methods are called in the event loop, and none of them waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import structlog

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.effects import AcceptMove, Effect, EndMatch, RejectRequest, ShowChange, ShowView, WakeAt
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.match import Match
from seatwise_referee.position import Position
from seatwise_server.play import play_messages
from seatwise_server.play.command_queue import MOST_WAITING_COMMANDS, Command, CommandQueue, MatchJournal
from seatwise_server.play.lag import EventLoopLag
from seatwise_server.play.outbox import Outbox
from seatwise_server.play.receipts import Receipts
from seatwise_server.play.seat_links import SeatLinks
from seatwise_server.play.step_marker import STEP_MARKER
from seatwise_server.play.transport_lag import TransportLag
from seatwise_server.store.group_commit.writer import AppendResult

TIMER_MARGIN_MS = 0.1
"""Timers are set this much later, in ms: floats and the loop round, and a timer that is too early would fire
again at once.
"""

log = structlog.get_logger()


class AskedPrompt(NamedTuple):
    """The prompt that was sent last."""

    number: int
    sent_at: float
    """When it was sent first, on the clock of the loop."""
    taken_off_ms: int = 0
    """The delay of gRPC that was taken off its charges so far."""


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
        transport: TransportLag | None = None,
    ) -> None:
        self.match = match
        self.name = match.setup.match
        self.epoch = epoch
        self.owner = owner
        self.is_closed = False
        self.is_fenced = False
        """Whether another referee owns the match."""
        self.is_forgotten = False
        """Whether Redis has forgotten, in a failover, that this referee owns the match."""
        self._is_stopping = False
        """Whether it accepts no more commands, and only waits for the journal's last answer."""
        self._lag = lag
        self._on_end = on_end
        self._on_deal = on_deal
        self._on_sit = on_sit
        self._loop = asyncio.get_running_loop()
        self._opened_s = self._loop.time() - match.position.at_ms / 1000
        self._stalled_s = lag.note_stall(self._loop.time())
        self._transport = transport
        self._asked = AskedPrompt(0, self._opened_s)
        self._timer: asyncio.TimerHandle | None = None
        self._ended: pb.MatchEnded | None = None
        self._receipts = Receipts(play_messages.receipt_key(match.setup.seed), written, match.position.seq)
        seats = len(match.setup.bots)
        self._queue = CommandQueue(self, journal, seats)
        self._links = SeatLinks(self, self.name, seats, epoch)
        self._log = log.bind(match=self.name, epoch=epoch)

    # Called for bots

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
        """Sits the bot down, or again through another stream."""
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
        """Queues the answer of a bot to a prompt; `at` is when the answer came."""
        if self._has_room(seat, request_id):
            self._queue.add_command(
                seat, lambda now: self.match.submit_move(Seat(seat), prompt, request_id, move, now), at
            )

    def resign_seat(self, seat: int, at: float) -> None:
        """Queues the resignation of a seat."""
        if self._has_room(seat, ""):
            self._queue.add_command(seat, lambda now: self.match.resign(Seat(seat), now), at)

    def drop_link(self, seat: int, outbox: Outbox) -> None:
        """Handles the loss of a bot's stream. The clock of the bot runs on, unless the loss was our fault."""
        if self._links.unlink_seat(seat, outbox):
            if self._lag.broke_links():
                self.match.await_return(Seat(seat), self._match_ms(self._loop.time()))
            else:
                self._start_clock_of_absent(seat)

    def ms_to_answer(self, seat: int, prompt: int, at: float) -> int | None:
        """Returns how long the seat took for its first answer to this prompt; None for a later answer."""
        return self.match.note_answer(Seat(seat), prompt, self._match_ms(at))

    # Called by the writer of a stream

    @property
    def needs_proof(self) -> bool:
        """See `UpdateSource`: in a race that counts, milliseconds decide."""
        prompt = self.match.position.prompt
        return bool(self.match.setup.competition) and prompt is not None and prompt.race

    def encode_update(self, seat: int) -> tuple[bytes, int]:
        """See `UpdateSource`."""
        told = self.match.update_for(Seat(seat), self._match_ms(self._loop.time()))
        receipt = self._receipts.receipt_of(told.seen_seq)
        item = play_messages.encode_update(self._links.links[seat].head, self.match.setup.game, told, receipt)
        return item, told.prompt if told.to_act else 0

    def on_prompt_delivered(self, seat: int, prompt: int, allowance_ms: int | None) -> None:
        """See `UpdateSource`."""
        if prompt > self._asked.number:
            self._asked = AskedPrompt(prompt, self._loop.time())
        self.perform_effects(
            self.match.note_delivery(Seat(seat), prompt, self._match_ms(self._loop.time()), allowance_ms)
        )

    def on_round_trip(self, seat: int, allowance_ms: int) -> None:
        """See `UpdateSource`."""
        self.perform_effects(self.match.note_allowance(Seat(seat), allowance_ms))

    # Called by the referee

    def start_clocks(self) -> None:
        """Starts the clocks; after a takeover an entry in the journal comes first."""
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
        """The bots that have not sat down here yet."""
        return [self.match.setup.bots[seat] for seat in sorted(self.match.awaited_seats)]

    def wait_for_bots(self, bots: Collection[str], ms: int) -> None:
        """Notes that in the last `ms` no lobby could tell these bots to sit down here."""
        seats = [Seat(seat) for seat, bot in enumerate(self.match.setup.bots) if bot in bots]
        if not self.is_closed and not self.match.is_over:
            self._queue.add_command(
                None, lambda now: self.match.note_unreachable(seats, ms, now), self._loop.time()
            )

    def void_match(self, reason: VoidReason) -> None:
        """Voids the match, so that it does not count."""
        self._queue.add_command(None, lambda now: self.match.void_match(reason, now), self._loop.time())

    def resume_after_gap(self, gap_s: float) -> None:
        """Continues after an outage of the store, which is charged to no bot."""
        if self.is_closed or self._is_stopping:
            return
        gap_ms = int((gap_s - self._count_stalls_as_gap(gap_s)) * 1000)
        # Before the answers that came meanwhile, so that these are not late because of the outage.
        self._queue.put_first(lambda now: self._note_standstill(gap_ms, "STORE", now))
        self._on_timer()

    def _count_stalls_as_gap(self, gap_s: float) -> float:
        """Leaves the stalls in an outage that ends now to the outage, so that no time is taken off twice.

        Returns how much of them is in the journal already, in seconds.
        """
        now = self._loop.time()
        pending_s = self._lag.note_stall(now) - self._stalled_s
        within_s = self._lag.stalled_since(now - gap_s)
        self._stalled_s += min(pending_s, within_s)
        return max(0.0, within_s - pending_s)

    def announce_end(self, end: pb.MatchEnded) -> None:
        """Tells all bots that sit here, or will, that the match is over. A second call does nothing."""
        if self._ended:
            return
        self._ended = end
        for seat in range(len(self._links.links)):
            self._links.send_end(seat, end)

    def lose_ownership(self, answer: AppendResult) -> None:
        """Closes the table, because the match is another owner's, or Redis has forgotten that it is ours."""
        self._log.warning("match_ownership_lost", answer=answer.name)
        self.is_fenced, self.is_forgotten = True, answer is AppendResult.LOST
        self.close_table()
        self._on_end(self)

    def stop_accepting(self) -> None:
        """Accepts no more commands, and closes the table as soon as the journal has answered."""
        self._is_stopping = True
        self._queue.close_queue()
        if not self._queue.is_writing:
            self.close_table()

    def close_table(self) -> None:
        """Closes the table: from now on it does nothing."""
        self.is_closed = True
        self._queue.forget_journal()
        if self._timer:
            self._timer.cancel()
        self._links.forget_seats(may_show=self._ended is not None)

    # Commands, one after the other

    def _match_ms(self, at: float) -> int:
        return max(0, int((at - self._opened_s) * 1000))

    def _has_room(self, seat: int, request_id: str) -> bool:
        """Whether one more command of this seat may wait; if not, rejects it."""
        if self._queue.has_room(seat):
            return True
        message = f"more than {MOST_WAITING_COMMANDS} requests of this seat are waiting"
        self._send_rejection(seat, request_id, "TOO_MANY", message)
        return False

    # Called by the queue of commands

    def decide(self, command: Command, at: float) -> list[Effect]:
        """Returns the effects of a command. An internal error voids this match, and affects no other."""
        now = self._match_ms(at)
        try:
            # entries of their own, before the command that came meanwhile
            stalls = [*self._stall_effects(), *self._transport_effects()]
            effects = (
                STEP_MARKER.run_step(self.name, lambda: command(now)) if STEP_MARKER.is_on else command(now)
            )
            return [*stalls, *effects] if stalls else effects
        except GameFault as fault:
            self._log.error(
                "game_failed", game=self.match.setup.game, why=str(fault), exc_info=fault.__cause__
            )
            return self._void_failed_match(VoidReason.GAME_FAULT, now)
        except Exception:
            self._log.exception("match_failed")
            return self._void_failed_match(VoidReason.UNPLAYABLE, now)

    def _void_failed_match(self, reason: VoidReason, now: int) -> list[Effect]:
        self.match = Match(self.match.setup, self.match.position)
        return self.match.void_match(reason, now)

    def _stall_effects(self) -> list[Effect]:
        """Takes stalls since the last command off the charges of all bots, whenever they were."""
        now = self._loop.time()
        stalled_s, self._stalled_s = self._lag.note_stall(now) - self._stalled_s, self._lag.stalled_s
        self.match.note_lag(self._lag.recent_ms(now))
        if not stalled_s:
            return []
        return self._note_standstill(int(stalled_s * 1000), "STALL", self._match_ms(self._lag.stalled_until))

    def _transport_effects(self) -> list[Effect]:
        """Takes off what gRPC was behind when the open prompt was sent, and is now. Each prompt has this once."""
        now = self._loop.time()
        prompt = self.match.position.prompt
        if not (
            self._transport
            and self._transport.is_known(now)
            and prompt
            and prompt.number == self._asked.number
        ):
            return []
        behind_ms = int(self._transport.exchange_delay_s(self._asked.sent_at, now) * 1000)
        more_ms = behind_ms - self._asked.taken_off_ms
        if more_ms <= 0:
            return []
        self._asked = self._asked._replace(taken_off_ms=behind_ms)
        return self._note_standstill(more_ms, "STALL", self._match_ms(now))

    def _note_standstill(self, ms: int, why: str, now: int) -> list[Effect]:
        """Tells the match of a standstill; if it began before the match was opened, only of the rest."""
        return self.match.note_standstill(min(ms, now), why, now)

    def on_kept(self, effects: list[Effect], entries: Sequence[bytes]) -> None:
        """Performs the effects of entries that the journal has, and shows what they have changed."""
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
        """Reports each seat that was taken, once, and that the cards are dealt."""
        position = self.match.position
        if self._on_sit:
            for seat, own in enumerate(position.seats):
                if own.has_sat and not before.seats[seat].has_sat:
                    self._on_sit(self, seat)
        if position.state is not None:
            self._on_deal(self)

    def perform_effects(self, effects: list[Effect]) -> None:
        """Performs effects in their order. The most frequent ones come first; `isinstance` is quicker than patterns."""
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
        """Shows every change to the bots that want it, except rejections of other seats: a view without a
        change would reveal them.
        """
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
        """Sets the one timer of the table. Deadlines mostly move back, so a timer that is early enough stays."""
        if at_ms is None:
            return
        when = self._opened_s + (at_ms + TIMER_MARGIN_MS) / 1000
        if self._timer is None or self._timer.cancelled() or self._timer.when() > when:
            if self._timer:
                self._timer.cancel()
            self._timer = self._loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        """Lets time pass in the match. While the store is away no time runs out: `resume_after_gap` comes first."""
        self._timer = None
        if not self.is_closed and not self._queue.is_writing:
            self._queue.add_command(None, lambda now: self.match.tick(now), self._loop.time())
