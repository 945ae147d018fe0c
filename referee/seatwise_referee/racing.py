"""The commands of a race: who lays, who calls, and what the journal gets to know of it, and when."""

from __future__ import annotations

from typing import Any

from seatwise_referee.deciding import Deciding
from seatwise_referee.effects import Accept, Changed, Effect, Reason, Reject
from seatwise_referee.ending import Ending
from seatwise_referee.game import IllegalMove, Json, Prompt, Seat
from seatwise_referee.journal import Agreed, Called, Forfeited
from seatwise_referee.position import TIMED_OUT
from seatwise_referee.race import MOST_LAYS, HeldCall, Race

LATE = "the time for this prompt had run out"
SECOND_MS = 1000


class Racing(Deciding):
    """Calls reach the game in the order of what they are charged; see `race`.

    A call is decided when no other seat can still send one that is earlier or ties: when even an answer
    that arrived now would be charged more than the call and the tie window together.
    """

    def note_lag(self, lag_ms: int, now: int) -> None:
        """The event loop lagged by so much: within a second no tie window is smaller than that."""
        if lag_ms >= self._lag_ms or now - self._lag_noted_ms > SECOND_MS:
            self._lag_ms, self._lag_noted_ms = lag_ms, now

    def _race_submit(
        self, race: Race, seat: Seat, prompt: int, request_id: str, move: Any, now: int
    ) -> list[Effect]:
        if race.has_called(seat):
            return self._answer_to_caller(race, seat, request_id)
        if self._is_late(seat, now):
            return [Reject(seat, request_id, Reason.TOO_LATE, LATE)]
        if race.is_too_fast(seat, now):
            too_many = f"at most {MOST_LAYS} layouts, calls and offers a second are taken"
            return [Reject(seat, request_id, Reason.TOO_MANY, too_many)]
        try:
            self._play_in_race(race, seat, request_id, move, now)
        except IllegalMove as illegal:
            return self._illegal(seat, prompt, request_id, str(illegal), now)
        self._decide_race(race, now)
        return self._done()

    def _answer_to_caller(self, race: Race, seat: Seat, request_id: str) -> list[Effect]:
        """A repeat of the call waits like the call; anything else comes after it."""
        if any((call.seat, call.request_id) == (seat, request_id) for call in race.calls()):
            return []
        return [
            Reject(
                seat, request_id, Reason.NOT_ASKED, "this seat has called, and moves no more in this round"
            )
        ]

    def _play_in_race(self, race: Race, seat: Seat, request_id: str, move: Any, now: int) -> None:
        charged_ms = self._asking.charge(seat, now)
        if self.game.is_call(move):  # type: ignore[union-attr]  # a race has a `RaceGame`
            race.hold(HeldCall(seat, request_id, charged_ms, self._asking.times(seat, now)), move)
        else:
            race.play(seat, move, charged_ms)
            race.forget(self._earliest_possible(race, now))
            self._show_race(race)

    def _show_race(self, race: Race) -> None:
        """What lies open may be seen at once, unless it ends the round: that is for the journal first."""
        if not race.is_agreed:
            self._shown = race.soft
            self._effects.append(Changed())

    def _earliest_possible(self, race: Race, now: int) -> int:
        """No call that is held or still to come is charged less."""
        charges = [self._asking.charge(seat, now) for seat in self._asking]
        return min([*charges, *(call.charged_ms for call in race.calls())])

    def _decide_race(self, race: Race, now: int) -> None:
        """Releases the calls that nobody can be before, and ends a round that all agree to end."""
        while self._race is race and (first := next(iter(race.calls()), None)):
            if now <= self._release_ms(race, first):
                return
            self._call(race, first, now)
        if self._race is race and race.is_agreed:
            self._agree(race, "OFFERED", (), now)
            self._go_on(now)

    def _release_ms(self, race: Race, call: HeldCall) -> int:
        """Until then somebody may still send a call that is earlier or ties."""
        last_ms = call.charged_ms + self._tie_window_ms()
        others = (seat for seat in self._asking if not race.has_called(seat))
        return max((self._asking.deadline(seat, last_ms) for seat in others), default=-1)

    def _tie_window_ms(self) -> int:
        return max(self._time_control.tie_window_ms, self._lag_ms)

    def _call(self, race: Race, first: HeldCall, now: int) -> None:
        window_ms = self._tie_window_ms()
        together = [call for call in race.calls() if call.charged_ms <= first.charged_ms + window_ms]
        state = race.state_at(first.charged_ms, together)
        entry = Called(
            prompt=self._number(),
            calls=tuple({"seat": call.seat, **call.times} for call in together),
            window_ms=window_ms,
            layouts=self._layouts(state),
            request_ids=tuple(call.request_id for call in together),
            **self._stamp(now),
        )
        callers = frozenset(call.seat for call in together)
        later = [call for call in race.calls() if call not in together]
        self._record(entry, self.game.call_together(state, callers))  # type: ignore[union-attr]
        self._effects.extend(Accept(call.seat, call.request_id, call.charged_ms) for call in together)
        if self._race is not race:
            over = "another seat called before, and the round is over"
            self._effects.extend(Reject(call.seat, call.request_id, Reason.STALE, over) for call in later)
        self._go_on(now)

    def _race_tick(self, race: Race, now: int) -> None:
        self._decide_race(race, now)
        if (
            self._race is not race
            or race.calls()
            or not all(self._is_late(seat, now) for seat in self._asking)
        ):
            return
        asked = tuple({"seat": seat, **self._asking.times(seat, now)} for seat in self._asking)
        silent = sorted(race.silent)
        self._agree(race, TIMED_OUT, asked, now)
        for seat in silent:
            if self._position.seats[seat].strikes >= self._time_control.max_strikes:
                self._record(Forfeited(seat=seat, ending=Ending.TIMED_OUT, **self._stamp(now)))
        self._go_on(now)

    def _agree(self, race: Race, reason: str, asked: tuple[dict[str, Json], ...], now: int) -> None:
        state = race.now_lying()
        entry = Agreed(
            prompt=self._number(),
            reason=reason,
            layouts=self._layouts(state),
            silent=tuple(sorted(race.silent)) if reason == TIMED_OUT else (),
            asked=asked,
            **self._stamp(now),
        )
        self._record(entry, self.game.agree(state))  # type: ignore[union-attr]

    def _layouts(self, state: Any) -> tuple[Json, ...]:
        return tuple(self.game.layouts(state))  # type: ignore[union-attr]

    def _number(self) -> int:
        assert self._position.prompt is not None
        return self._position.prompt.number

    def _race_wakes(self, race: Race, prompt: Prompt) -> list[int]:
        """When a call may be released, and when the time of all who still build is over."""
        wakes = [self._release_ms(race, call) for call in race.calls()[:1]]
        building = [self._asking.deadline(seat, self._allowed(prompt, seat)) for seat in self._asking]
        return [*wakes, max(building)] if building else wakes
