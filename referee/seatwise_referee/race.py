"""An open race: what its seats have laid and called, before the journal and the others know of it.

Laying is cheap and frequent, so it is written down only when it counts: the entry that decides
something carries what lay before every seat. A call is held until nobody can send one any more that is
earlier or ties, because calls are ordered by what they are charged and not by their arrival.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seatwise_referee.game import Json, RaceGame, Seat

MOST_LAYS = 50
"""Of one seat in a second."""
SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call of which nobody is told yet, not even its seat."""

    seat: Seat
    request_id: str
    charged_ms: int
    times: Mapping[str, Json]
    """As journal entries tell them."""


class Race:
    """One race prompt. The journaled state is its base; `soft` is that state with all that lies."""

    def __init__(self, game: RaceGame[Any, Any, Any], state: Any) -> None:
        self._game = game
        self._base = state
        self.soft = state
        self._number = self._number_of(state)
        self._lays: dict[Seat, list[tuple[int, Any]]] = defaultdict(list)
        self._offers: dict[Seat, Any] = {}
        self._recent: dict[Seat, deque[int]] = defaultdict(lambda: deque(maxlen=MOST_LAYS))
        self._calls: dict[Seat, HeldCall] = {}
        self.silent = set(game.prompt(state).seats)  # type: ignore[union-attr]  # a race has an open prompt
        """Seats that have given no sign of life."""

    # What the seats do

    def is_too_fast(self, seat: Seat, now: int) -> bool:
        """Whether this would be more than `MOST_LAYS` in a second; one that is not counts."""
        recent = self._recent[seat]
        if len(recent) == MOST_LAYS and now - recent[0] < SECOND_MS:
            return True
        recent.append(now)
        return False

    def play(self, seat: Seat, move: Any, charged_ms: int) -> None:
        """The seat lays, or agrees to the end of the round, or no longer does. `IllegalMove` changes nothing."""
        self.soft = self._game.play(self.soft, seat, move)
        self.silent.discard(seat)
        if self._game.is_lay(move):
            self._lays[seat].append((charged_ms, move))
        else:
            self._offers[seat] = move

    def hold(self, call: HeldCall, move: Any) -> None:
        """The seat calls; `IllegalMove` if it cannot. Nothing that others see may change by it."""
        self._game.play(self.soft, call.seat, move)
        self.silent.discard(call.seat)
        self._calls[call.seat] = call

    # What is to be decided

    @property
    def is_agreed(self) -> bool:
        """Whether all who still build have agreed to end the round."""
        return self._number_of(self.soft) != self._number

    def has_called(self, seat: Seat) -> bool:
        """Whether the seat's call is held."""
        return seat in self._calls

    def calls(self) -> list[HeldCall]:
        """Those held, in the order of what they are charged."""
        return sorted(self._calls.values(), key=lambda call: (call.charged_ms, call.seat))

    def state_at(self, charged_ms: int, calls: Iterable[HeldCall]) -> Any:
        """The base with what lay before each seat at that charged time; before callers, at their own."""
        until = {call.seat: call.charged_ms for call in calls}
        state = self._base
        for seat in sorted(self._lays):
            state = self._with_last_lay(state, seat, until.get(seat, charged_ms))
        return state

    def now_lying(self) -> Any:
        """The base with all that lies now."""
        return self.state_at(max((lays[-1][0] for lays in self._lays.values() if lays), default=0), ())

    def last_lay(self, seat: Seat) -> Any | None:
        """The seat's last move that laid something, or `None`."""
        return self._lays[seat][-1][1] if self._lays[seat] else None

    def rebase(self, state: Any) -> None:
        """The journal has gone on within this prompt: seats may be out, or gone."""
        self._base = state
        building = self._building(state)
        self._lays = defaultdict(list, {seat: lays for seat, lays in self._lays.items() if seat in building})
        self._offers = {seat: move for seat, move in self._offers.items() if seat in building}
        self._calls = {seat: call for seat, call in self._calls.items() if seat in building}
        self.silent &= building
        self._rebuild()

    def forget(self, charged_ms: int) -> None:
        """No call can be charged less than this any more: older layouts cannot count."""
        for seat, lays in self._lays.items():
            older = [lay for lay in lays if lay[0] <= charged_ms]
            self._lays[seat] = lays[max(0, len(older) - 1) :]

    def _rebuild(self) -> None:
        self.soft = self.now_lying()
        for seat, move in self._offers.items():
            self.soft = self._game.play(self.soft, seat, move)

    def _with_last_lay(self, state: Any, seat: Seat, charged_ms: int) -> Any:
        counting = [move for at_ms, move in self._lays[seat] if at_ms <= charged_ms]
        return self._game.play(state, seat, counting[-1]) if counting else state

    def _building(self, state: Any) -> frozenset[Seat]:
        prompt = self._game.prompt(state)
        return prompt.seats if prompt and prompt.number == self._number else frozenset()

    def _number_of(self, state: Any) -> int:
        prompt = self._game.prompt(state)
        return prompt.number if prompt else 0
