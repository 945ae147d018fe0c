"""A prompt in which all seats build at once: which calls stand, and what the journal and the seats learn of it when."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seatwise_referee.decision import HAS_LEFT, TIME_IS_OVER, AcceptMove, Decision, RejectRequest, ShowChange
from seatwise_referee.ending import RejectReason
from seatwise_referee.game import IllegalMove, Json, Prompt, RaceGame, Seat
from seatwise_referee.journal import Agreed, AgreedReason, Called, RaceCall, SeatTimeout
from seatwise_referee.prompt_clock import PromptClock

MOST_LAYS_A_SECOND = 50
"""How many layouts and offers of one seat are accepted in a second."""
SECOND_MS = 1000
MANY_LAYS = 16
"""With more layouts of one seat than this it pays to look for those that cannot count any more."""
LONG_AGO_MS = 0
"""The arrival time of the layout that is kept when older ones are dropped. It is charged least."""


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that no seat is told of yet, not even its own."""

    seat: Seat
    request_id: str
    came_ms: int


class Race:
    """The race of one prompt.

    Its base is the state of the journal. `provisional` is that state with all layouts and offers since.
    """

    def __init__(
        self, game: RaceGame[Any, Any, Any], state: Any, charge: Callable[[Seat, int], int], opened_ms: int
    ) -> None:
        self.provisional = state
        self._opened_ms = opened_ms
        self._game = game
        self._charge = charge
        self._base = state
        self._number = self._number_of(state)
        self._lays: dict[Seat, list[tuple[int, Any]]] = defaultdict(list)
        """By seat: when each layout arrived, and the move."""
        self._offers: dict[Seat, Any] = {}
        self._came: dict[Seat, int] = {}
        """By seat: when its newest answer arrived."""
        self._recent: dict[Seat, deque[int]] = defaultdict(lambda: deque(maxlen=MOST_LAYS_A_SECOND))
        self._calls: dict[Seat, HeldCall] = {}
        self.silent_seats = set(self._building_seats(state))
        """Seats that have sent no answer to this prompt."""

    # Answers of the seats

    def note_arrival(self, seat: Seat, at_ms: int) -> int:
        """Return when the seat's next answer arrived.

        That is never before the prompt was opened, if the bot guessed it. It is never before the seat's last
        answer either, if a quicker link of the bot overtook a slower one.
        """
        self._came[seat] = max(at_ms, self._came.get(seat, self._opened_ms))
        return self._came[seat]

    def is_too_fast(self, seat: Seat, came_ms: int) -> bool:
        """Return whether this answer is more than `MOST_LAYS_A_SECOND`. If it is not, it is counted."""
        recent = self._recent[seat]
        if len(recent) == MOST_LAYS_A_SECOND and came_ms - recent[0] < SECOND_MS:
            return True
        recent.append(came_ms)
        return False

    def play_provisionally(self, seat: Seat, move: Any, came_ms: int) -> None:
        """The seat lays cards, or offers to end the round, or withdraws that. `IllegalMove` changes nothing."""
        state = self._game.play(self.provisional, seat, move)
        if self._game.is_lay(move):
            self._lays[seat].append((came_ms, move))
        elif self._game.is_offer(move):
            self._offers[seat] = move
        else:
            raise IllegalMove("this is for the referee to play: lay, call, or offer to end the round")
        self.provisional = state

    def hold_call(self, call: HeldCall, move: Any) -> None:
        """The seat calls. Nothing that other seats see changes. Raises `IllegalMove` if the seat cannot call."""
        self._game.play(self.provisional, call.seat, move)
        self._calls[call.seat] = call

    # Decisions that are due

    @property
    def is_agreed(self) -> bool:
        """Whether all seats that still build have agreed to end the round."""
        return self._number_of(self.provisional) != self._number

    @property
    def callers(self) -> frozenset[Seat]:
        """The seats whose calls are held."""
        return frozenset(self._calls)

    def held_calls(self) -> list[HeldCall]:
        """Return the held calls in the order of their charges."""
        return sorted(self._calls.values(), key=lambda call: (self.charged_ms_of(call), call.seat))

    def charged_ms_of(self, call: HeldCall) -> int:
        """Return the charge of the call, in milliseconds."""
        return self._charge(call.seat, call.came_ms)

    def release_calls(self, calls: Iterable[HeldCall]) -> None:
        """Hold these calls no longer."""
        for call in calls:
            del self._calls[call.seat]

    def state_at(self, charged_ms: int, calls: Iterable[HeldCall]) -> Any:
        """Return the base with the layout of each seat at that charged time, or of a caller when it called.

        A caller lays nothing after its call. The charges of its layouts do not say what lay then: an answer that was delayed
        by our fault may be charged less than an earlier one.
        """
        callers = {call.seat for call in calls}
        lying: dict[Seat, Any] = {}
        for seat, lays in self._lays.items():
            for came_ms, move in lays:
                if seat in callers or self._charge(seat, came_ms) <= charged_ms:
                    lying[seat] = move
        return self._base_with(lying)

    def state_now(self) -> Any:
        """Return the base with the present layout of each seat."""
        return self._base_with({seat: lays[-1][1] for seat, lays in self._lays.items() if lays})

    def last_lay(self, seat: Seat) -> Any | None:
        """Return the seat's last move that laid something; `None` if there is none."""
        lays = self._lays.get(seat)
        return lays[-1][1] if lays else None

    def has_many(self, seat: Seat) -> bool:
        """Return whether it is time for `forget_older`."""
        return len(self._lays[seat]) > MANY_LAYS

    # The journal moves on

    def rebase_on(self, state: Any) -> list[HeldCall]:
        """Continue from a later state of this prompt, in which some seats build no more. Return their held calls."""
        self._base = state
        building = self._building_seats(state)
        self._lays = defaultdict(list, _only_of(building, self._lays))
        self._offers = _only_of(building, self._offers)
        gone = [call for call in self.held_calls() if call.seat not in building]
        self.release_calls(gone)
        self.silent_seats &= building
        self.provisional = self.state_now()
        for seat, move in self._offers.items():
            self.provisional = self._game.play(self.provisional, seat, move)
        return gone

    def forget_older(self, charged_ms: int) -> None:
        """Drop layouts that cannot count any more, because no call can be charged less than this."""
        for seat, lays in self._lays.items():
            older = [move for came_ms, move in lays if self._charge(seat, came_ms) <= charged_ms]
            if older:
                lays[: len(older)] = [(LONG_AGO_MS, older[-1])]

    def _base_with(self, lying: Mapping[Seat, Any]) -> Any:
        state = self._base
        for seat in sorted(lying):
            state = self._game.play(state, seat, lying[seat])
        return state

    def _building_seats(self, state: Any) -> frozenset[Seat]:
        prompt = self._game.prompt(state)
        return prompt.seats if prompt and prompt.number == self._number else frozenset()

    def _number_of(self, state: Any) -> int:
        prompt = self._game.prompt(state)
        return prompt.number if prompt else 0


def _only_of(seats: frozenset[Seat], by_seat: Mapping[Seat, Any]) -> dict[Seat, Any]:
    return {seat: value for seat, value in by_seat.items() if seat in seats}


TOO_FAST = f"at most {MOST_LAYS_A_SECOND} layouts and offers a second are taken"
HAS_CALLED = "this seat has called, and moves no more in this round"
CALLED_LATER = "another seat called before, and the round is over"
RELEASE_NOW_MS = -1
"""The deadline of other callers, if there are none: a held call is decided at once."""


class RacePrompt:
    """Decides on calls in the order of their charges; `Race` keeps them until then.

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
