"""The commands of a race: who lays, who calls, and what the journal gets to know of it, and when.

Commands come in the order of their arrival, and a decision may fall between two of them only for what
has come before both. So here `now` is when something came, however long it has waited; only entries
are stamped no earlier than the entry before.
"""

from __future__ import annotations

from typing import Any, cast

from seatwise_referee.deciding import Deciding
from seatwise_referee.effects import Accept, Changed, Effect, Reason, Reject
from seatwise_referee.ending import Ending
from seatwise_referee.game import IllegalMove, Json, Prompt, RaceGame, Seat
from seatwise_referee.journal import Agreed, Called, Forfeited
from seatwise_referee.position import OFFERED, TIMED_OUT
from seatwise_referee.race import MOST_LAYS, HeldCall, Race

LATE = "the time for this prompt had run out"
TOO_FAST = f"at most {MOST_LAYS} layouts and offers a second are taken"
HAS_CALLED = "this seat has called, and moves no more in this round"
CALLED_LATER = "another seat called before, and the round is over"
AT_ONCE_MS = -1


class Racing(Deciding):
    """Calls reach the game in the order of what they are charged; see `race`.

    A call is decided when no other seat can still send one that is earlier or ties: when even an answer
    that arrived now would be charged more than the call and the tie window together.
    """

    def note_lag(self, lag_ms: int) -> None:
        """The event loop lagged by at most so much in the last second: no tie window is smaller than that.

        Nor does the window shrink while a call is held, to which another may tie.
        """
        is_held = self._race is not None and bool(self._race.callers)
        self._lag_ms = max(lag_ms, self._lag_ms) if is_held else lag_ms

    @property
    def _race_game(self) -> RaceGame[Any, Any, Any]:
        return cast("RaceGame[Any, Any, Any]", self.game)  # only such a game has races

    # From the seats

    def _race_submit(self, race: Race, seat: Seat, request_id: str, move: Any, now: int) -> list[Effect]:
        came_ms = race.came(seat, now)
        if seat in race.callers:
            return self._answer_to_caller(race, seat, request_id)
        if self._is_late(seat, came_ms):
            return [Reject(seat, request_id, Reason.TOO_LATE, LATE)]
        is_call = self._race_game.is_call(move)
        if not is_call and race.is_too_fast(seat, came_ms):
            return [Reject(seat, request_id, Reason.TOO_MANY, TOO_FAST)]
        race.silent.discard(seat)
        try:
            if is_call:
                self._hold(race, HeldCall(seat, request_id, came_ms), move)
            else:
                self._lay(race, seat, move, came_ms)
        except IllegalMove as illegal:
            self._illegal(seat, self._number(), request_id, str(illegal), came_ms)
        if self._decide_race(came_ms):
            self._go_on(came_ms)
        return self._done()

    def _answer_to_caller(self, race: Race, seat: Seat, request_id: str) -> list[Effect]:
        """A repeat of the call waits like the call; anything else comes after it."""
        if any((call.seat, call.request_id) == (seat, request_id) for call in race.calls()):
            return []
        return [Reject(seat, request_id, Reason.NOT_ASKED, HAS_CALLED)]

    def _hold(self, race: Race, call: HeldCall, move: Any) -> None:
        race.hold(call, move)
        self._callers |= {call.seat}

    def _lay(self, race: Race, seat: Seat, move: Any, came_ms: int) -> None:
        before = race.soft
        race.play(seat, move, came_ms)
        if race.has_many(seat):
            race.forget(self._earliest_possible(race, came_ms))
        if not race.is_agreed:  # the end of a round is for the journal first
            self._shown = race.soft
            self._effects.append(Changed(self._who_sees(before, race.soft, seat)))

    def _who_sees(self, before: Any, after: Any, mover: Seat) -> tuple[Seat, ...]:
        """Nobody else is shown anything for a card that was only moved: that would tell of it."""
        if self.game.view(before, None) == self.game.view(after, None):
            return (mover,)
        return tuple(self._seats(lambda _: True))

    def _earliest_possible(self, race: Race, now: int) -> int:
        """No call that is held or still to come is charged less."""
        charges = [self._asking.least_charge(seat, now) for seat in self._building()]
        return min([*charges, *map(race.charged, race.calls())])

    # What is due

    def _race_tick(self, race: Race, now: int) -> None:
        self._must_be_put()
        if self._decide_race(now):
            self._go_on(now)
        elif not race.callers and all(self._is_late(seat, now) for seat in self._building()):
            self._run_out(race, now)

    def _decide_race(self, now: int) -> bool:
        """Releases a call that nobody can be before any more, or ends a round that all agree to end."""
        race = self._race
        if race is None:
            return False
        calls = race.calls()
        if calls and now > self._release_ms(race, calls[0]):
            self._call(race, calls[0], now)
        elif race.is_agreed and not calls:
            self._agree(race, OFFERED, (), (), now)
        else:
            return False
        return True

    def _release_ms(self, race: Race, call: HeldCall) -> int:
        """Until then somebody may still send a call that is earlier or ties."""
        last_ms = race.charged(call) + self._tie_window_ms()
        others = [seat for seat in self._building() if seat not in race.callers]
        prompt = cast("Prompt", self._position.prompt)
        latest = (
            self._asking.last_deadline(seat, min(last_ms, self._allowed(prompt, seat))) for seat in others
        )
        return max(latest, default=AT_ONCE_MS)

    def _tie_window_ms(self) -> int:
        return max(self._time_control.tie_window_ms, self._lag_ms)

    def _call(self, race: Race, first: HeldCall, now: int) -> None:
        window_ms, first_ms = self._tie_window_ms(), race.charged(first)
        together = [call for call in race.calls() if race.charged(call) <= first_ms + window_ms]
        state = race.state_at(first_ms, together)
        entry = Called(
            prompt=self._number(),
            calls=tuple(map(self._told, together)),
            window_ms=window_ms,
            layouts=self._layouts(state),
            request_ids=tuple(call.request_id for call in together),
            **self._stamp(max(now, *(call.came_ms for call in together))),
        )
        accepted = [Accept(call.seat, call.request_id, race.charged(call)) for call in together]
        race.release(together)
        self._record(entry, self._race_game.call_together(state, frozenset(call.seat for call in together)))
        self._effects.extend(accepted)
        if self._race is not race:
            self._refuse_calls(race.calls(), Reason.STALE, CALLED_LATER)

    def _told(self, call: HeldCall) -> dict[str, Json]:
        return {
            "seat": call.seat,
            "came_ms": call.came_ms,
            **self._asking.times(call.seat, call.came_ms),
        }

    def _run_out(self, race: Race, now: int) -> None:
        """The time of all who still build is over. Who gave no sign of life has a strike."""
        at_ms, silent = self._clamped(now), tuple(sorted(race.silent))
        asked = tuple({"seat": seat, **self._asking.times(seat, at_ms)} for seat in self._building())
        self._agree(race, TIMED_OUT, silent, asked, now)
        for seat in silent:
            if self._position.seats[seat].strikes >= self._time_control.max_strikes:
                self._record(Forfeited(seat=seat, ending=Ending.TIMED_OUT, **self._stamp(now)))
        self._go_on(now)

    def _agree(
        self, race: Race, reason: str, silent: tuple[Seat, ...], asked: tuple[dict[str, Json], ...], now: int
    ) -> None:
        state = race.now_lying()
        entry = Agreed(
            prompt=self._number(),
            reason=reason,
            layouts=self._layouts(state),
            silent=silent,
            asked=asked,
            **self._stamp(now),
        )
        self._record(entry, self._race_game.agree(state))

    def _layouts(self, state: Any) -> tuple[Json, ...]:
        return tuple(self._race_game.layouts(state))

    def _number(self) -> int:
        return cast("Prompt", self._position.prompt).number

    def _building(self) -> list[Seat]:
        """Those who build in the open race, as far as entries have been decided on."""
        return sorted(cast("Prompt", self._position.prompt).seats)

    def _show_race(self) -> None:
        """All that has been decided is in the journal: what lies, and who has called, is as the race has it."""
        self._shown = self._race.soft if self._race else None
        self._callers = self._race.callers if self._race else frozenset()

    def _race_wakes(self, race: Race, prompt: Prompt) -> list[int]:
        """When a call may be released, and when the time of all who still build is over."""
        wakes = [self._release_ms(race, call) for call in race.calls()[:1]]
        building = [self._asking.deadline(seat, self._allowed(prompt, seat)) for seat in self._building()]
        return [*wakes, max(building)] if building else wakes
