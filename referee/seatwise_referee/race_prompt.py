"""A prompt in which all seats build at once: which calls stand, and what the journal learns of it when.

Commands come in the order of their arrival. A decision that falls between two commands may depend only on what
arrived before both. So here `now` is always the time of an arrival, however long the command has waited. Only
the times of entries never fall.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seatwise_referee.decision import HAS_LEFT, TIME_IS_OVER, Decision
from seatwise_referee.effects import AcceptMove, RejectRequest, ShowChange
from seatwise_referee.ending import RejectReason
from seatwise_referee.game import IllegalMove, Json, Prompt, RaceGame, Seat
from seatwise_referee.journal import Agreed, AgreedReason, Called, RaceCall, SeatTimeout
from seatwise_referee.prompt_clock import PromptClock
from seatwise_referee.race import MOST_LAYS_A_SECOND, HeldCall, Race

TOO_FAST = f"at most {MOST_LAYS_A_SECOND} layouts and offers a second are taken"
HAS_CALLED = "this seat has called, and moves no more in this round"
CALLED_LATER = "another seat called before, and the round is over"
RELEASE_NOW_MS = -1
"""The deadline of other callers, if there are none: a held call is decided at once."""


class RacePrompt:
    """Decides on calls in the order of their charges; `race.Race` keeps them until then.

    A call is decided when no other seat can still send one that is earlier or ties. That is so when even an
    answer that arrived now would be charged more than the call and the tie window together.
    """

    def __init__(
        self, decision: Decision, clock: PromptClock, game: RaceGame[Any, Any, Any], lag_ms: int
    ) -> None:
        self._decision = decision
        self._clock = clock
        self._game = game
        self._number = self._open_prompt.number
        self._race = Race(game, decision.position.state, clock.charged_ms, decision.position.at_ms)
        self._lag_ms = lag_ms
        self.shown_state: Any = decision.position.state
        """The state with all layouts that seats may see: each seat its own, and of the others how many cards."""
        self.hidden_callers: frozenset[Seat] = frozenset()
        """Seats whose calls are held. Only they themselves may notice it yet."""

    @property
    def _open_prompt(self) -> Prompt:
        prompt = self._decision.position.prompt
        assert prompt is not None
        return prompt

    @property
    def is_open(self) -> bool:
        """Whether the round goes on after the last recorded entry."""
        prompt = self._decision.position.prompt
        return prompt is not None and prompt.number == self._number

    def note_lag(self, lag_ms: int) -> None:
        """The event loop lagged by at most `lag_ms` in the last second: no tie window is smaller than that.

        The window does not shrink while a call is held, because another call may tie with it.
        """
        self._lag_ms = max(lag_ms, self._lag_ms) if self._race.callers else lag_ms

    # Answers of the seats

    def submit_move(self, seat: Seat, request_id: str, move: Any, now: int) -> int | None:
        """Accept or refuse the answer of a seat that is asked, and decide what is due then.

        Returns the time at which the match moves on; `None` if nothing is decided yet.
        """
        race, effects = self._race, self._decision.effects
        came_ms = race.note_arrival(seat, now)
        if seat in race.callers:
            self._answer_caller(seat, request_id)
            return None
        if self._is_late(seat, came_ms):
            effects.append(RejectRequest(seat, request_id, RejectReason.TOO_LATE, TIME_IS_OVER))
            return None
        is_call = self._game.is_call(move)
        if not is_call and race.is_too_fast(seat, came_ms):
            effects.append(RejectRequest(seat, request_id, RejectReason.TOO_MANY, TOO_FAST))
            return None
        race.silent_seats.discard(seat)
        try:
            if is_call:
                self._hold_call(HeldCall(seat, request_id, came_ms), move)
            else:
                self._take_layout(seat, move, came_ms)
        except IllegalMove as illegal:
            if self._decision.reject_illegal(seat, request_id, str(illegal), came_ms):
                return came_ms
        return came_ms if self.decide_next(came_ms) else None

    def _answer_caller(self, seat: Seat, request_id: str) -> None:
        """Refuse the answer of a seat that has called, unless it is the call once more: that waits like the call."""
        if not any((call.seat, call.request_id) == (seat, request_id) for call in self._race.held_calls()):
            self._decision.effects.append(RejectRequest(seat, request_id, RejectReason.NOT_ASKED, HAS_CALLED))

    def _hold_call(self, call: HeldCall, move: Any) -> None:
        self._race.hold_call(call, move)
        self.hidden_callers |= {call.seat}

    def _take_layout(self, seat: Seat, move: Any, came_ms: int) -> None:
        race = self._race
        before = race.provisional
        race.play_provisionally(seat, move, came_ms)
        if race.has_many(seat):
            race.forget_older(self._least_possible_ms(came_ms))
        if not race.is_agreed:  # the end of a round is for the journal first
            self.shown_state = race.provisional
            self._decision.effects.append(ShowChange(self._who_sees(before, race.provisional, seat)))

    def _who_sees(self, before: Any, after: Any, mover: Seat) -> tuple[Seat, ...]:
        """Return the seats to which the change is shown. A card that was only moved is shown to its own seat alone."""
        if self._game.view(before, None) == self._game.view(after, None):
            return (mover,)
        return tuple(map(Seat, range(len(self._decision.position.seats))))

    def _least_possible_ms(self, now: int) -> int:
        """Return the least charge of all calls that are held or can still come."""
        charges = [self._clock.least_charged_ms(seat, now) for seat in self._building_seats()]
        return min([*charges, *map(self._race.charged_ms_of, self._race.held_calls())])

    # Decisions that are due

    def decide_due(self, now: int) -> int | None:
        """Decide what is due. Returns the time at which the match moves on; `None` if nothing is due."""
        if self.decide_next(now):
            return now
        if not self._race.callers and all(self._is_late(seat, now) for seat in self._building_seats()):
            self._end_at_time_limit(now)
            return now
        return None

    def decide_next(self, now: int) -> bool:
        """Decide on a call that no seat can precede any more, or end a round that all agree to end.

        Returns whether there was something to decide. There may be more.
        """
        if not self.is_open:
            return False
        calls = self._race.held_calls()
        if calls and now > self._release_ms(calls[0]):
            self._decide_calls(calls[0], now)
        elif self._race.is_agreed and not calls:
            self._end_without_call(AgreedReason.OFFERED, (), (), now)
        else:
            return False
        return True

    def wake_ms(self) -> int | None:
        """Return when a call can be decided, or the time of all seats that build is over; `None` if never."""
        wakes = [self._release_ms(call) for call in self._race.held_calls()[:1]]
        deadlines = [self._clock.deadline_ms(seat, self._allowed_ms()) for seat in self._building_seats()]
        if deadlines:
            wakes.append(max(deadlines))
        return 1 + min(wakes) if wakes else None

    def _release_ms(self, call: HeldCall) -> int:
        """Return the last time at which another seat can send a call that is earlier or ties."""
        last_ms = self._race.charged_ms_of(call) + self._tie_window_ms()
        others = [seat for seat in self._building_seats() if seat not in self._race.callers]
        latest = (self._clock.latest_deadline_ms(seat, min(last_ms, self._allowed_ms())) for seat in others)
        return max(latest, default=RELEASE_NOW_MS)

    def _tie_window_ms(self) -> int:
        return max(self._decision.limits.tie_window_ms, self._lag_ms)

    # Entries

    def _decide_calls(self, first: HeldCall, now: int) -> None:
        """Record the first call, and all that tie with it."""
        race, effects = self._race, self._decision.effects
        window_ms, first_ms = self._tie_window_ms(), race.charged_ms_of(first)
        together = [call for call in race.held_calls() if race.charged_ms_of(call) <= first_ms + window_ms]
        state = race.state_at(first_ms, together)
        entry = Called(
            prompt=self._number,
            calls=tuple(map(self._recorded_call, together)),
            window_ms=window_ms,
            layouts=self._layouts_in(state),
            request_ids=tuple(call.request_id for call in together),
            **self._decision.next_stamp(max(now, *(call.came_ms for call in together))),
        )
        accepted = [AcceptMove(call.seat, call.request_id, race.charged_ms_of(call)) for call in together]
        race.release_calls(together)
        self._decision.record_entry(
            entry, self._game.call_together(state, frozenset(call.seat for call in together))
        )
        self.follow_position()
        effects.extend(accepted)
        if not self.is_open:
            self._reject_calls(race.held_calls(), RejectReason.STALE, CALLED_LATER)

    def _recorded_call(self, call: HeldCall) -> RaceCall:
        return RaceCall(call.seat, call.came_ms, self._clock.charge_of(call.seat, call.came_ms))

    def _end_at_time_limit(self, now: int) -> None:
        """End the round, because the time of all seats is over. A seat that sent no answer has a strike."""
        at_ms, silent = max(now, self._decision.position.at_ms), tuple(sorted(self._race.silent_seats))
        asked = tuple(
            SeatTimeout(seat, self._clock.charge_of(seat, at_ms)) for seat in self._building_seats()
        )
        self._end_without_call(AgreedReason.TIMED_OUT, silent, asked, now)
        self._decision.forfeit_for_strikes(silent, now)

    def _end_without_call(
        self, reason: AgreedReason, silent: tuple[Seat, ...], asked: tuple[SeatTimeout, ...], now: int
    ) -> None:
        state = self._race.state_now()
        entry = Agreed(
            prompt=self._number,
            reason=reason,
            layouts=self._layouts_in(state),
            silent=silent,
            asked=asked,
            **self._decision.next_stamp(now),
        )
        self._decision.record_entry(entry, self._game.end_round(state))

    def _layouts_in(self, state: Any) -> tuple[Json, ...]:
        return tuple(self._game.layouts(state))

    # The journal moves on

    def follow_position(self) -> None:
        """Follow the recorded entries: refuse the held calls of seats that build no more in this round."""
        if self.is_open:
            self._reject_calls(
                self._race.rebase_on(self._decision.position.state), RejectReason.NOT_ASKED, HAS_LEFT
            )

    def _reject_calls(self, calls: Iterable[HeldCall], reason: RejectReason, message: str) -> None:
        rejects = (RejectRequest(call.seat, call.request_id, reason, message) for call in calls)
        self._decision.effects.extend(rejects)

    def unrecorded_lay(self, seat: Seat) -> Any | None:
        """Return the seat's last layout that the journal does not have; it counts when the seat leaves."""
        return self._race.last_lay(seat) if self.is_open else None

    def show_confirmed(self) -> None:
        """Show the seats all that has been decided, because the journal has it now."""
        self.shown_state, self.hidden_callers = self._race.provisional, self._race.callers

    # Seats and their time

    def _building_seats(self) -> list[Seat]:
        """Return the seats that build after the last recorded entry."""
        return sorted(self._open_prompt.seats)

    def _is_late(self, seat: Seat, now: int) -> bool:
        return self._clock.charged_ms(seat, now) > self._allowed_ms()

    def _allowed_ms(self) -> int:
        """Return the highest charge that is still in time: a race takes nothing from the bank."""
        return self._decision.limits.allowed_ms(self._open_prompt.pace, bank_ms=0)
