"""One match at this referee: the shell around `Match`.

A table is an actor without a task of its own. Its commands run one after the other, and no effect of a command is shown
before the journal has it. All methods are called in the event loop, and none of them waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

import structlog

from seatwise_referee.decision import Effect
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.journal import Entry, JournalEntry, Rejected, encode_entry
from seatwise_referee.match import Match
from seatwise_referee.position import Position
from seatwise_server.counts import COUNTS
from seatwise_server.play.lease import LeasedJournal
from seatwise_server.play.match_clock import EventLoopLag, MatchClock, TransportLag
from seatwise_server.play.outbox import Outbox
from seatwise_server.play.seat_updates import SeatUpdates
from seatwise_server.play.step_marker import STEP_MARKER
from seatwise_server.store.group_commit.writer import AppendResult
from seatwise_server.tracing import TRACING

MOST_WAITING_COMMANDS = 8
"""The most commands of one seat that may wait."""

Command: TypeAlias = Callable[[int], list[Effect]]
"""A command for a match. It takes the match's time, in milliseconds, and returns the effects."""

log = structlog.get_logger()


class Table:
    """The owner's side of one match."""

    def __init__(
        self,
        match: Match,
        epoch: int,
        owner: str,
        journal: LeasedJournal,
        lag: EventLoopLag,
        on_end: Callable[[Table], None],
        on_deal: Callable[[Table], None],
        written: Sequence[bytes] = (),
        on_sit: Callable[[Table, int], None] | None = None,
        transport: TransportLag | None = None,
    ) -> None:
        """`on_end` is called when the last entry is in the journal, or the match is not ours any more."""
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
        self._on_end, self._on_deal, self._on_sit = on_end, on_deal, on_sit
        self._clock = MatchClock(match.position.at_ms, self._on_timer, lag, transport)
        self.updates = SeatUpdates(match, epoch, self._clock, written, lambda: on_end(self))
        """The messages to its seats."""
        self._journal = journal
        self._commands: list[tuple[int | None, Command, float]] = []
        """Those that wait. A list, because it is mostly empty: an empty deque takes 760 bytes, and there are many tables."""
        self._waiting = [0] * len(match.setup.bots)
        """The number of commands that wait, for each seat."""
        self._held: list[Effect] | None = None
        """The effects that wait for the journal's answer; None if nothing was appended."""
        self._entries: list[tuple[Entry, bytes]] = []
        """The entries that were appended last, and as the journal has them."""
        self._asked_s = 0.0
        """The time of that append, on the clock of the loop."""
        self._came_s = 0.0
        """The time at which the command before that came."""
        self._log = log.bind(match=self.name, epoch=epoch)

    # Called for bots

    def is_seat_of(self, bot: str, seat: int) -> bool:
        """Whether the bot plays this seat."""
        bots = self.match.setup.bots
        return 0 <= seat < len(bots) and bots[seat] == bot

    def sits_through(self, seat: int, outbox: Outbox) -> bool:
        """Whether the seat's bot sits there through this stream."""
        return self.updates.is_linked_by(seat, outbox)

    def sit_down(
        self, seat: int, nonce: bytes, every_change: bool, outbox: Outbox, at: float, receipt: bytes = b""
    ) -> None:
        """Sit the bot down, or again through another stream."""
        if receipt and self.updates.receipts.prove_loss(receipt):
            self._log.error("journal_lost", seat=seat, seq=self.match.position.seq)
            self.void_match(VoidReason.JOURNAL_LOST)
        self.updates.link_seat(seat, outbox, every_change)
        if self.updates.repeat_end(seat):
            return
        if self.match.position.seats[seat].has_sat:
            self.updates.perform_effects(self.match.note_return(Seat(seat), self._clock.ms_at(at)))
            self.updates.show_view(seat)
        elif self._has_room(seat, ""):
            self._add_command(seat, lambda now: self.match.sit(Seat(seat), nonce or None, now), at)

    def submit_move(self, seat: int, prompt: int, request_id: str, move: Any, at: float) -> None:
        """Queue the answer of a bot to a prompt; `at` is when the answer came."""
        if self._has_room(seat, request_id):
            self._add_command(
                seat, lambda now: self.match.submit_move(Seat(seat), prompt, request_id, move, now), at
            )

    def resign_seat(self, seat: int, at: float) -> None:
        """Queue the resignation of a seat."""
        if self._has_room(seat, ""):
            self._add_command(seat, lambda now: self.match.resign(Seat(seat), now), at)

    def ms_to_answer(self, seat: int, prompt: int, at: float) -> int | None:
        """Return how long the seat took for its first answer to this prompt; None for a later answer."""
        return self.match.note_answer(Seat(seat), prompt, self._clock.ms_at(at))

    # Called by the referee

    def start_clocks(self) -> None:
        """Start the clocks; after a takeover an entry in the journal comes first."""
        if self.match.is_over:
            self._on_end(self)
        elif self.epoch > 1:
            self._add_own_command(self._take_over_effects)
        else:
            self._clock.let_time_pass()

    def _take_over_effects(self, now: int) -> list[Effect]:
        away = [Seat(seat) for seat in self.updates.seats_without_link()]
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

    def wait_for_absent(self, ms: int) -> list[str]:
        """Notes that in the last `ms` no bot could connect here. Those that are not connected are awaited, within bounds.

        Return the bots that are waited for no more, so that they lose something.
        """
        absent = [Seat(seat) for seat in self.updates.seats_without_link()]
        if not absent or self.is_closed or self.match.is_over:
            return []
        self._add_own_command(lambda now: self.match.note_no_room(absent, ms, now))
        shut_out = self.match.shut_out_seats(self._clock.now_ms)
        return [self.match.setup.bots[seat] for seat in absent if seat in shut_out]

    def void_match(self, reason: VoidReason) -> None:
        """Void the match, so that it does not count."""
        self._add_own_command(lambda now: self.match.void_match(reason, now))

    def resume_after_gap(self, gap_s: float) -> None:
        """Continue after an outage of the store, which is charged to no bot."""
        if self.is_closed or self._is_stopping:
            return
        gap_ms = self._clock.outage_ms(gap_s)
        # Before the answers that came meanwhile, so that these are not late because of the outage.
        resume: Command = lambda now: self.match.note_standstill(min(gap_ms, now), "STORE", now)  # noqa: E731
        self._commands.insert(0, (None, resume, self._clock.now))
        self._run_commands()
        self._clock.let_time_pass()

    def lose_ownership(self, answer: AppendResult) -> None:
        """Close the table, because the match is another owner's, or Redis has forgotten that it is ours."""
        self._log.warning("match_ownership_lost", answer=answer.name)
        self.is_fenced, self.is_forgotten = True, answer is AppendResult.LOST
        self.close_table()
        self._on_end(self)

    def stop_accepting(self) -> None:
        """Accept no more commands, and close the table as soon as the journal has answered."""
        self._is_stopping = True
        self._commands.clear()
        if self._held is None:
            self.close_table()

    def close_table(self) -> None:
        """Close the table: from now on it does nothing."""
        self.is_closed = True
        self._commands.clear()
        self._held = None
        self._clock.close_clock()
        self.updates.close_updates()

    # Commands, one after the other

    def _has_room(self, seat: int, request_id: str) -> bool:
        """Whether one more command of this seat may wait; if not, rejects it."""
        if self._waiting[seat] < MOST_WAITING_COMMANDS:
            return True
        message = f"more than {MOST_WAITING_COMMANDS} requests of this seat are waiting"
        self.updates.send_rejection(seat, request_id, "TOO_MANY", message)
        return False

    def _add_command(self, seat: int | None, command: Command, at: float) -> None:
        """Add a command of a seat, or of the server itself, that came at `at`, and run what can be run."""
        if not (self.is_closed or self._is_stopping):
            if seat is not None:
                self._waiting[seat] += 1
            self._commands.append((seat, command, at))
            self._run_commands()

    def _add_own_command(self, command: Command) -> None:
        self._add_command(None, command, self._clock.now)

    def _on_timer(self) -> None:
        """Let time pass in the match. While the store is away no time runs out: `resume_after_gap` comes first."""
        if not self.is_closed and self._held is None:
            self._add_own_command(lambda now: self.match.tick(now))

    def _run_commands(self) -> None:
        """Run one command after the other. While the journal has not answered, or the store is away, they wait."""
        while self._commands and self._held is None and self._journal.healthy:
            seat, command, at = self._commands.pop(0)
            if seat is not None:
                self._waiting[seat] -= 1
            self._came_s = at
            self._append_effects(self._decide(command, at))

    def _decide(self, command: Command, at: float) -> list[Effect]:
        """Return the effects of a command. An internal error voids this match, and affects no other."""
        now = self._clock.ms_at(at)
        try:
            # entries of their own, before the command that came meanwhile
            stalls = self._clock.find_standstills(self.match, self._clock.now)
            effects = (
                STEP_MARKER.run_step(self.name, lambda: command(now)) if STEP_MARKER.is_on else command(now)
            )
            return [*stalls, *effects] if stalls else effects
        except GameFault as fault:
            why = str(fault)
            self._log.error("game_failed", game=self.match.setup.game, why=why, exc_info=fault.__cause__)
            return self._void_failed_match(VoidReason.GAME_FAULT, now)
        except Exception:
            self._log.exception("match_failed")
            return self._void_failed_match(VoidReason.UNPLAYABLE, now)

    def _void_failed_match(self, reason: VoidReason, now: int) -> list[Effect]:
        self.match = self.updates.match = Match(self.match.setup, self.match.position)
        return self.match.void_match(reason, now)

    def _append_effects(self, effects: list[Effect]) -> None:
        """Have the entries among the effects journaled; without any, the effects are performed at once."""
        entries = [(entry, encode_entry(entry)) for entry in effects if isinstance(entry, JournalEntry)]
        if not entries:
            self.updates.perform_effects(effects)
            return
        self._held, self._entries, self._asked_s = effects, entries, self._clock.now
        first_seq, data = entries[0][0].seq, [written for _, written in entries]
        self._journal.append_entries(self.name, self.epoch, self.owner, first_seq, data, self._on_appended)

    def _on_appended(self, answer: AppendResult) -> None:
        """Handle the journal's answer: only now may the effects be shown."""
        effects, self._held = self._held, None
        if effects is None:
            return
        if not answer.is_kept:
            self.lose_ownership(answer)
            return
        now = self._clock.now
        COUNTS.appends.add(now - self._asked_s)
        for entry, written in self._entries:
            COUNTS.count_entry(entry)
            self.updates.receipts.add_entry(written, is_public=type(entry) is not Rejected)
        before = self.match.position
        effects += self.match.confirm_entries(self._clock.ms_at(now))
        self.updates.perform_effects(effects)
        if before.state is None:
            self._report_set_up(before)
        self.updates.show_news(before)
        if self._is_stopping and not self.match.is_over:
            self.close_table()
        if TRACING.is_on:
            kinds = " ".join(type(entry).__name__ for entry, _ in self._entries)
            TRACING.record_span("move", self._clock.now - self._came_s, match=self.name, entries=kinds)
        self._run_commands()

    def _report_set_up(self, before: Position) -> None:
        position = self.match.position
        if self._on_sit:
            for seat, own in enumerate(position.seats):
                if own.has_sat and not before.seats[seat].has_sat:
                    self._on_sit(self, seat)
        if position.state is not None:
            self._on_deal(self)
