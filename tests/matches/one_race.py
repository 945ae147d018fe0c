"""A shell without a world for a race: Ubongo on the house's own deck, with hands that it knows how to lay.

race = RaceDesk(seats=2)              # all have sat and been handed the prompt at 0
race.lay(0, 7); race.at(40); race.call(0)
race.until(60)                        # the timer rings whenever the match has asked for it
"""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from matches.one_match import SEED, Desk
from matches.ubongo_positions import wrong
from seatwise_referee.decision import AcceptMove, RejectRequest, ShowChange, ShowView, WakeAt
from seatwise_referee.game import Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ubongo import CALL, Lay, OfferEnd, fitting_places, symbols_in
from seatwise_referee.match import Match, replay_match
from seatwise_referee.setup import Setup
from seatwise_referee.time_control import TimeControl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatwise_referee.decision import Effect
    from seatwise_referee.games.ubongo import Layout, Side, UbongoState
    from seatwise_referee.match import SeatUpdate

CAP_MS = 100
BUILD_MS, GRACE_MS, WINDOW_MS = 10_000, 50, 5
ROUND_MS = BUILD_MS + GRACE_MS
SEVEN = 7


def race_setup(seats: int = 2, rounds: int = 1, false_call: str = "out", **limits: Any) -> Setup:
    """A match of Ubongo with short limits."""
    limits = {
        "free_ms": {"build": BUILD_MS},
        "grace_ms": GRACE_MS,
        "setup_ms": 5000,
        "tie_window_ms": WINDOW_MS,
        "allowance_cap_ms": CAP_MS,
        **limits,
    }
    return Setup(
        match="matches/test",
        game="ubongo",
        rules_version="1",
        options=GAMES["ubongo"].complete_options(
            {"rounds": rounds, "false_call": false_call, "deck": "easy"}
        ),
        bots=tuple(f"bots/b{seat}/versions/1" for seat in range(seats)),
        time_control=TimeControl(**limits),
        seed=SEED,
    )


@cache
def fitting(hand: tuple[Side, ...], number: int) -> Layout:
    """So many cards of the hand, as they fit; each of the first cards of it fits too."""
    symbols = symbols_in(hand)

    def grown(layout: Layout) -> Layout | None:
        if len(layout) == number:
            return layout
        for side in hand:
            if side.card not in {placement.card for placement in layout}:
                for place in fitting_places(layout, side.card, symbols):
                    found = grown((*layout, place))
                    if found:
                        return found
        return None

    found = grown(())
    assert found is not None, "this hand has none: take another seed"
    return found


def open_race(match: Match) -> Any:
    """What the match keeps of an open race; `None` if none is open."""
    return match._race and match._race._race


class RaceDesk(Desk):
    """One match of Ubongo and its journal; `now` stands still unless a test moves it."""

    def __init__(
        self, seats: int = 2, rounds: int = 1, false_call: str = "out", *, allowances: Iterable[int] = (),
        are_seated: bool = True, **limits: Any,
    ) -> None:  # fmt: skip
        self.setup = race_setup(seats, rounds, false_call, **limits)
        self.match = Match(self.setup)
        self.journal = []
        self.now = 0
        self.wake: int | None = None
        self.told: list[tuple[int, Effect]] = []
        """What seats were told, and when."""
        self._requests = count(1)
        if are_seated:
            self.sit_all()
            self.hand_all(*allowances)

    def do(self, effects: Iterable[Effect]) -> list[Effect]:
        """Writes and confirms, and sets the timer."""
        done = super().do(effects)
        for effect in done:
            if isinstance(effect, WakeAt):
                self.wake = effect.at_ms
            elif isinstance(effect, AcceptMove | RejectRequest | ShowView | ShowChange):
                self.told.append((self.now, effect))
        return done

    # The clocks

    def hand_all(self, *allowances: int) -> None:
        """Every seat that is asked is handed the prompt now; with these allowances, by seat."""
        for seat in sorted(self.match.position.prompt.seats if self.match.position.prompt else ()):
            self.hand_to(seat, allowances[seat] if allowances else 0)

    def hand_to(self, seat: int, allowance_ms: int | None = 0) -> None:
        """The prompt reaches this seat's transport."""
        self.do(self.match.note_delivery(Seat(seat), self.prompt, self.now, allowance_ms))

    def at(self, now: int) -> RaceDesk:
        """It is so late, and no timer has rung."""
        self.now = now
        return self

    def until(self, now: int) -> None:
        """Time passes, and the timer rings when the match wants it to."""
        while self.wake is not None and self.wake <= now and not self.match.is_over:
            self.now, self.wake = max(self.now, self.wake), None
            self.tick()
        self.now = now

    def stand_still(self, ms: int, why: str = "STALL") -> None:
        """We have stood still for so long until now."""
        self.do(self.match.note_standstill(ms, why, self.now))

    def take_over(self, *away: int) -> None:
        """Another referee goes on from the journal; these seats' bots are not there yet."""
        self.match = replay_match(self.setup, self.journal)
        self.do(self.match.take_over(self.match.position.epoch + 1, self.now, map(Seat, away)))

    # The seats

    @property
    def state(self) -> UbongoState:
        """As the journal has it."""
        state: UbongoState = self.match.position.state
        return state

    def layout(self, seat: int, number: int) -> Layout:
        """So many fitting cards of the seat's hand; if the number is negative, so many that do not fit."""
        hand = self.state.round.hands[seat]
        if number < 0:
            return wrong(side.card for side in hand[:-number])
        return fitting(hand, max(7, number))[:number]

    def play(self, seat: int, move: Any, request_id: str | None = None) -> list[Effect]:
        """The seat moves."""
        return self.submit(move, request_id, seat)

    def lay(self, seat: int, number: int) -> list[Effect]:
        """The seat lays so many cards."""
        return self.play(seat, Lay(self.layout(seat, number)))

    def call(self, seat: int, request_id: str | None = None) -> list[Effect]:
        """The seat calls."""
        return self.play(seat, CALL, request_id or f"call of {seat}")

    def offer(self, seat: int, *, on: bool = True) -> list[Effect]:
        """The seat agrees to end the round, or no longer does."""
        return self.play(seat, OfferEnd(on))

    def resign(self, seat: int) -> list[Effect]:
        """The seat gives up."""
        return self.do(self.match.resign(Seat(seat), self.now))

    # What came of it

    def last(self, kind: str) -> Any:
        """The last entry of that kind."""
        return [entry for entry in self.journal if entry.kind == kind][-1]

    def callers(self, nth: int = -1) -> list[tuple[int, int]]:
        """Of the last `called` the seats and what they were charged."""
        entry = [entry for entry in self.journal if entry.kind == "called"][nth]
        return [(call.seat, call.charge.charged_ms) for call in entry.calls]

    def lengths(self, kind: str = "called") -> list[int]:
        """Of the last such entry how many cards lay before each seat."""
        return [len(layout) for layout in self.last(kind).layouts]

    @property
    def points(self) -> tuple[int, ...]:
        """Of the round that was finished last."""
        return self.state.round.points[-1]

    def answers(self, seat: int) -> list[tuple[int, str]]:
        """When a seat was answered, and what: ACCEPTED, or the reason why not."""
        return [
            (now, str(getattr(effect, "reason", "ACCEPTED")))
            for now, effect in self.told
            if isinstance(effect, AcceptMove | RejectRequest) and effect.seat == seat
        ]

    def update(self, seat: int) -> SeatUpdate:
        """What the seat would be told now."""
        return self.match.update_for(Seat(seat), self.now)


def ready(*seats: int, tables: int = 2, **how: Any) -> RaceDesk:
    """These seats have laid seven fitting cards; all were handed the prompt at 0."""
    race = RaceDesk(tables, **how)
    for seat in seats:
        race.lay(seat, SEVEN)
    return race
