"""One match at this referee: the shell around `Match`.

A table is an actor without a task of its own. Its commands go through one queue (`command_queue.py`), so
nothing is sent before the journal has it. All methods are called in the event loop, and none of them waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import structlog

from seatwise_referee.effects import Effect
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.match import Match
from seatwise_referee.position import Position
from seatwise_server.play.command_queue import MOST_WAITING_COMMANDS, Command, CommandQueue, MatchJournal
from seatwise_server.play.lag import EventLoopLag
from seatwise_server.play.match_clock import MatchClock
from seatwise_server.play.outbox import Outbox
from seatwise_server.play.seat_updates import SeatUpdates
from seatwise_server.play.standstills import Standstills, note_standstill
from seatwise_server.play.step_marker import STEP_MARKER
from seatwise_server.play.transport_lag import TransportLag
from seatwise_server.store.group_commit.writer import AppendResult

log = structlog.get_logger()


class TableEvents(NamedTuple):
    """The reports of a table to its referee."""

    on_end: Callable[[Table], None]
    """The last entry is in the journal, or the match is not ours any more."""
    on_deal: Callable[[Table], None]
    on_sit: Callable[[Table, int], None] | None

    def report_set_up(self, table: Table, before: Position) -> None:
        """Reports each seat that was taken since `before`, once, and that the cards are dealt."""
        position = table.match.position
        if self.on_sit:
            for seat, own in enumerate(position.seats):
                if own.has_sat and not before.seats[seat].has_sat:
                    self.on_sit(table, seat)
        if position.state is not None:
            self.on_deal(table)


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
        self._events = TableEvents(on_end, on_deal, on_sit)
        self._clock = MatchClock(match.position.at_ms, self._on_timer)
        self._standstills = Standstills(self._clock, lag, transport)
        self.updates = SeatUpdates(
            match, epoch, self._clock, self._standstills, written, lambda: on_end(self)
        )
        """The messages to its seats."""
        self._queue = CommandQueue(self, journal, len(match.setup.bots))
        self._log = log.bind(match=self.name, epoch=epoch)

    # Called for bots

    def is_seat_of(self, bot: str, seat: int) -> bool:
        """Whether the bot plays this seat."""
        bots = self.match.setup.bots
        return 0 <= seat < len(bots) and bots[seat] == bot

    def sits_through(self, seat: int, outbox: Outbox) -> bool:
        """Whether the seat's bot sits there through this stream."""
        return self.updates.links.is_linked_by(seat, outbox)

    def sit_down(
        self, seat: int, nonce: bytes, every_change: bool, outbox: Outbox, at: float, receipt: bytes = b""
    ) -> None:
        """Sits the bot down, or again through another stream."""
        if receipt and self.updates.receipts.prove_loss(receipt):
            self._log.error("journal_lost", seat=seat, seq=self.match.position.seq)
            self.void_match(VoidReason.JOURNAL_LOST)
        self.updates.links.link_seat(seat, outbox, every_change)
        if self.updates.repeat_end(seat):
            return
        if self.match.position.seats[seat].has_sat:
            self.updates.perform_effects(self.match.note_return(Seat(seat), self._clock.ms_at(at)))
            self.updates.show_view(seat)
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

    def ms_to_answer(self, seat: int, prompt: int, at: float) -> int | None:
        """Returns how long the seat took for its first answer to this prompt; None for a later answer."""
        return self.match.note_answer(Seat(seat), prompt, self._clock.ms_at(at))

    # Called by the referee

    def start_clocks(self) -> None:
        """Starts the clocks; after a takeover an entry in the journal comes first."""
        if self.match.is_over:
            self._events.on_end(self)
        elif self.epoch > 1:
            self._add_own_command(self._take_over_effects)
        else:
            self._clock.let_time_pass()

    def _take_over_effects(self, now: int) -> list[Effect]:
        away = [Seat(seat) for seat in self.updates.links.seats_without_link()]
        return self.match.take_over(self.epoch, now, away)

    @property
    def awaited_bots(self) -> list[str]:
        """The bots that have not sat down here yet."""
        return [self.match.setup.bots[seat] for seat in sorted(self.match.awaited_seats)]

    def wait_for_bots(self, bots: Collection[str], ms: int) -> None:
        """Notes that in the last `ms` no lobby could tell these bots to sit down here."""
        seats = [Seat(seat) for seat, bot in enumerate(self.match.setup.bots) if bot in bots]
        if not self.is_closed and not self.match.is_over:
            self._add_own_command(lambda now: self.match.note_unreachable(seats, ms, now))

    def wait_for_absent(self, ms: int) -> None:
        """Notes that in the last `ms` no bot could connect here. Those that are not connected have a set-up time to return."""
        absent = [Seat(seat) for seat in self.updates.links.seats_without_link()]
        if absent and not self.is_closed and not self.match.is_over:
            self._add_own_command(lambda now: self.match.note_no_room(absent, ms, now))

    def void_match(self, reason: VoidReason) -> None:
        """Voids the match, so that it does not count."""
        self._add_own_command(lambda now: self.match.void_match(reason, now))

    def resume_after_gap(self, gap_s: float) -> None:
        """Continues after an outage of the store, which is charged to no bot."""
        if self.is_closed or self._is_stopping:
            return
        gap_ms = self._standstills.outage_ms(gap_s)
        # Before the answers that came meanwhile, so that these are not late because of the outage.
        self._queue.put_first(lambda now: note_standstill(self.match, gap_ms, "STORE", now))
        self._clock.let_time_pass()

    def lose_ownership(self, answer: AppendResult) -> None:
        """Closes the table, because the match is another owner's, or Redis has forgotten that it is ours."""
        self._log.warning("match_ownership_lost", answer=answer.name)
        self.is_fenced, self.is_forgotten = True, answer is AppendResult.LOST
        self.close_table()
        self._events.on_end(self)

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
        self._clock.stop_timer()
        self.updates.forget_seats()

    # Commands, one after the other

    def _has_room(self, seat: int, request_id: str) -> bool:
        """Whether one more command of this seat may wait; if not, rejects it."""
        if self._queue.has_room(seat):
            return True
        message = f"more than {MOST_WAITING_COMMANDS} requests of this seat are waiting"
        self.updates.send_rejection(seat, request_id, "TOO_MANY", message)
        return False

    # Called by the queue of commands

    def decide(self, command: Command, at: float) -> list[Effect]:
        """Returns the effects of a command. An internal error voids this match, and affects no other."""
        now = self._clock.ms_at(at)
        try:
            # entries of their own, before the command that came meanwhile
            stalls = self._standstills.find_effects(self.match)
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
        self.match = self.updates.match = Match(self.match.setup, self.match.position)
        return self.match.void_match(reason, now)

    def on_kept(self, effects: list[Effect], entries: Sequence[bytes]) -> None:
        """Performs the effects of entries that the journal has, and shows what they have changed."""
        for entry in entries:
            self.updates.receipts.add_entry(entry)
        before = self.match.position
        wake = self.match.confirm_entries(self._clock.now_ms)
        self.updates.perform_effects([*effects, *wake])
        if before.state is None:
            self._events.report_set_up(self, before)
        self.updates.show_news(before)
        if self._is_stopping and not self.match.is_over:
            self.close_table()

    def perform_effects(self, effects: list[Effect]) -> None:
        """Performs effects, in their order."""
        self.updates.perform_effects(effects)

    def _add_own_command(self, command: Command) -> None:
        """Queues a command of the server itself."""
        self._queue.add_command(None, command, self._clock.now)

    def _on_timer(self) -> None:
        """Lets time pass in the match. While the store is away no time runs out: `resume_after_gap` comes first."""
        if not self.is_closed and not self._queue.is_writing:
            self._add_own_command(lambda now: self.match.tick(now))
