"""The layouts, offers and calls in an open race, before the journal and the other seats know of them.

Layouts are cheap and frequent. So the journal gets them only when they count: the entry that decides
something carries the layout of every seat. A call is held until no seat can send one that is earlier or ties,
because calls are ordered by their charge instead of their arrival.

An answer is kept with the time at which it arrived. Its charge is computed when it counts, because the process
may learn later that it stood still in that time.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seatwise_referee.game import IllegalMove, RaceGame, Seat

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
