"""An open race: what its seats have laid and called, before the journal and the others know of it.

Laying is cheap and frequent, so it is written down only when it counts: the entry that decides
something carries what lay before every seat. A call is held until nobody can send one any more that is
earlier or ties, because calls are ordered by what they are charged and not by their arrival.

What comes is kept with the time at which it came, and its charge worked out when it counts: a
standstill of ours may turn out later to have fallen into it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seatwise_referee.game import IllegalMove, RaceGame, Seat

MOST_LAYS_A_SECOND = 50
"""Of one seat in a second, changes of its offer included."""
SECOND_MS = 1000
MANY_LAYS = 16
"""Layouts of one seat; only when there are more is it worth while to look for those that cannot count."""
LONG_AGO_MS = 0
"""What came then is charged least."""


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call of which nobody is told yet, not even its seat."""

    seat: Seat
    request_id: str
    came_ms: int


class Race:
    """One race prompt. The journaled state is its base; `provisional` is that state with all that lies."""

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
        """By seat: when it came, and the move."""
        self._offers: dict[Seat, Any] = {}
        self._came: dict[Seat, int] = {}
        """By seat: when its newest answer came."""
        self._recent: dict[Seat, deque[int]] = defaultdict(lambda: deque(maxlen=MOST_LAYS_A_SECOND))
        self._calls: dict[Seat, HeldCall] = {}
        self.silent = set(self._building_seats(state))
        """Seats that have given no sign of life."""

    # What the seats do

    def note_arrival(self, seat: Seat, at_ms: int) -> int:
        """When the seat's next answer came: not before the prompt that it guessed, nor before the answer
        that was read before it, whichever of the bot's links was the quicker one.
        """
        self._came[seat] = max(at_ms, self._came.get(seat, self._opened_ms))
        return self._came[seat]

    def is_too_fast(self, seat: Seat, came_ms: int) -> bool:
        """Whether this would be more than `MOST_LAYS_A_SECOND`; one that is not counts."""
        recent = self._recent[seat]
        if len(recent) == MOST_LAYS_A_SECOND and came_ms - recent[0] < SECOND_MS:
            return True
        recent.append(came_ms)
        return False

    def play_provisionally(self, seat: Seat, move: Any, came_ms: int) -> None:
        """The seat lays, or agrees to the end of the round, or no longer does. `IllegalMove` changes nothing."""
        soft = self._game.play(self.provisional, seat, move)
        if self._game.is_lay(move):
            self._lays[seat].append((came_ms, move))
        elif self._game.is_offer(move):
            self._offers[seat] = move
        else:
            raise IllegalMove("this is for the referee to play: lay, call, or offer to end the round")
        self.provisional = soft

    def hold_call(self, call: HeldCall, move: Any) -> None:
        """The seat calls; `IllegalMove` if it cannot. Nothing that others see may change by it."""
        self._game.play(self.provisional, call.seat, move)
        self._calls[call.seat] = call

    # What is to be decided

    @property
    def is_agreed(self) -> bool:
        """Whether all who still build have agreed to end the round."""
        return self._number_of(self.provisional) != self._number

    @property
    def callers(self) -> frozenset[Seat]:
        """Those whose call is held."""
        return frozenset(self._calls)

    def held_calls(self) -> list[HeldCall]:
        """Those held, in the order of what they are charged."""
        return sorted(self._calls.values(), key=lambda call: (self.charged_ms_of(call), call.seat))

    def charged_ms_of(self, call: HeldCall) -> int:
        """What the call costs its seat."""
        return self._charge(call.seat, call.came_ms)

    def release_calls(self, calls: Iterable[HeldCall]) -> None:
        """These are held no longer."""
        for call in calls:
            del self._calls[call.seat]

    def state_at(self, charged_ms: int, calls: Iterable[HeldCall]) -> Any:
        """The base with what lay before each seat at that charged time; before callers, at their own."""
        until = {call.seat: self.charged_ms_of(call) for call in calls}
        lying: dict[Seat, Any] = {}
        for seat, lays in self._lays.items():
            for came_ms, move in lays:
                if self._charge(seat, came_ms) <= until.get(seat, charged_ms):
                    lying[seat] = move
        return self._base_with(lying)

    def state_now(self) -> Any:
        """The base with all that lies now."""
        return self._base_with({seat: lays[-1][1] for seat, lays in self._lays.items() if lays})

    def last_lay(self, seat: Seat) -> Any | None:
        """The seat's last move that laid something, or `None`."""
        lays = self._lays.get(seat)
        return lays[-1][1] if lays else None

    def has_many(self, seat: Seat) -> bool:
        """Whether it is time to `forget`."""
        return len(self._lays[seat]) > MANY_LAYS

    # As the race goes on

    def rebase_on(self, state: Any) -> list[HeldCall]:
        """The journal has gone on within this prompt: seats may be out, or gone. Their calls, if any are held."""
        self._base = state
        building = self._building_seats(state)
        self._lays = defaultdict(list, _only_of(building, self._lays))
        self._offers = _only_of(building, self._offers)
        gone = [call for call in self.held_calls() if call.seat not in building]
        self.release_calls(gone)
        self.silent &= building
        self.provisional = self.state_now()
        for seat, move in self._offers.items():
            self.provisional = self._game.play(self.provisional, seat, move)
        return gone

    def forget_older(self, charged_ms: int) -> None:
        """No call can be charged less than this any more: older layouts cannot count."""
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
