"""The state of a match of Ubongo, from the deal to the points of the last round, and the view of one seat."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo.cards import (
    BY_TEXT,
    HAND_SIZE,
    Side,
    Symbols,
    UbongoCard,
    deck_of_round,
    texts_of_deck,
)
from seatwise_referee.shuffle import shuffle_items
from seatwise_referee.value_type import value_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatwise_referee.game import Json, Seat
    from seatwise_referee.games.ubongo.cards import Side
    from seatwise_referee.games.ubongo.decks import Deck
    from seatwise_referee.games.ubongo.geometry import Layout


class UbongoSettings(NamedTuple):
    """The part of a state that never changes."""

    seed: bytes
    """The later decks are dealt from it, so it is as secret as a hand."""

    rounds: int
    false_call_ends: bool
    """Whether a false call ends the round. If not, its caller is out of the round."""

    deck: Deck


class BuiltLayout(NamedTuple):
    """One seat's final layout of a finished round. All seats may see it."""

    layout: Layout
    sides: tuple[Side, ...]
    """The sides that are up, in the order of the layout."""

    has_called: bool
    """Whether the seat called. Its points show whether the call was right."""


class OpenedDeck(NamedTuple):
    """The hands of a deck that has left play."""

    rounds: range
    """The rounds that were played with it: two, or one if the match ended after that."""

    hands: tuple[tuple[UbongoCard, ...], ...]
    """By seat."""


class UbongoRound(NamedTuple):
    """The part of a state that changes only from round to round."""

    settings: UbongoSettings
    number: int
    """The number of this round, from 1."""

    hands: tuple[tuple[Side, ...], ...]
    """By seat, the nine sides that are up, in the order of the cards; empty when the match is over."""

    points: tuple[tuple[int, ...], ...]
    """The points of each finished round, by seat."""

    last_round: tuple[BuiltLayout, ...]
    """Of the round that was finished last, by seat; nothing before."""

    opened: OpenedDeck | None = None
    """The deck that left play last, with its hands; `None` before. All may see it."""


class UbongoState(NamedTuple):
    """The state of a match; immutable and hashable."""

    building: frozenset[Seat]
    """The seats that still build in this round; empty when the match is over."""

    layouts: tuple[Layout, ...]
    """By seat, all that lies before it now."""

    offers: frozenset[Seat]
    """Those of the building that agree to end the round."""

    out: frozenset[Seat]
    """Those that called although their cards do not fit."""

    round: UbongoRound

    @property
    def is_over(self) -> bool:
        """Whether the last round is scored."""
        return len(self.round.points) == self.round.settings.rounds


def first_state(seats: int, seed: bytes, rounds: int, deck: Deck, *, false_call_ends: bool) -> UbongoState:
    """Return the first round, dealt, in which all seats build."""
    settings = UbongoSettings(seed, rounds, false_call_ends, deck)
    return begin_round(UbongoRound(settings, 1, _dealt_hands(settings, 1, seats), (), ()))


def begin_round(round_: UbongoRound) -> UbongoState:
    """Return the start of a round: all seats build, and have laid nothing (K5)."""
    seats = len(round_.hands)
    nobody: frozenset[Seat] = frozenset()
    return UbongoState(frozenset(map(Seat, range(seats))), ((),) * seats, nobody, nobody, round_)


def next_hands(round_: UbongoRound) -> tuple[tuple[Side, ...], ...]:
    """Return the hands of the next round by seat: new cards, or the same ones turned over (K3, K4)."""
    number, deck = round_.number + 1, round_.settings.deck
    if number % 2:
        return _dealt_hands(round_.settings, number, len(round_.hands))
    return tuple(tuple(deck.side(side.card, number) for side in hand) for hand in round_.hands)


def _dealt_hands(settings: UbongoSettings, number: int, seats: int) -> tuple[tuple[Side, ...], ...]:
    return tuple(
        tuple(settings.deck.side(card, number) for card in sorted(hand))
        for hand in deal_hands(deck_of_round(number), seats, settings.seed)
    )


def deal_hands(deck: int, seats: int, seed: bytes) -> list[list[UbongoCard]]:
    """Return the hands by seat, each in the order dealt: the first nine cards go to seat 0 (K2, K3)."""
    cards = [BY_TEXT[text] for text in shuffle_items(texts_of_deck(deck), seed, f"ubongo/deck/{deck}")]
    return [cards[first : first + HAND_SIZE] for first in range(0, seats * HAND_SIZE, HAND_SIZE)]


def put_away(round_: UbongoRound) -> OpenedDeck | None:
    """Return the deck that is open after this round: its own, if its cards leave play now (K4)."""
    settings, number = round_.settings, round_.number
    if number % 2 and number < settings.rounds:
        return round_.opened
    first = number - (number % 2 == 0)
    hands = tuple(tuple(side.card for side in hand) for hand in round_.hands)
    return OpenedDeck(range(first, number + 1), hands)


def opened_hands(state: UbongoState) -> list[Json]:
    """Return the hands of the deck that left play last, once for each round that was played with it."""
    settings, _, _, _, _, opened = state.round
    return [write_round(settings.deck, number, opened.hands) for number in opened.rounds] if opened else []


def write_round(deck: Deck, number: int, hands: Sequence[Sequence[UbongoCard]]) -> Json:
    """Return a round as records have it: the hands by seat, and the symbols of the sides that are up."""
    symbols: dict[str, Json] = {str(card): deck.side(card, number).symbols for hand in hands for card in hand}
    return {"round": number, "hands": [list(map(str, hand)) for hand in hands], "symbols": symbols}


def symbols_in(hand: tuple[Side, ...]) -> dict[UbongoCard, Symbols]:
    """Return the symbols of each card of a hand."""
    return dict(hand)


# The view of one seat: all that it may know of a match


@value_type
class UbongoView:
    """Everything that one seat may know.

    It has no field for another seat's hand, nor for another seat's layout before the round is over.

    Attributes:
        seat: The viewer; `None` is a spectator.
        round: The round being played, from 1; the last round if the match is over.
        rounds: Number of rounds in the match.
        hand: Your nine sides, laid or not: `side.card` and `side.symbols`; empty for a spectator and after the match.
        layout: The cards that you have laid.
        laid: Number of cards that each seat has laid, by seat.
        building: The seats that still build in this round.
        offers: The seats among them that agree to end the round.
        out: The seats that called in this round although their cards do not fit.
        points: The points of each finished round: a tuple of rounds, each a tuple by seat.
        last_round: The final layout of each seat in the last finished round, by seat; empty in the first round.

    `print(view)` shows it on one screen, with the layouts shortened.
    """

    seat: Seat | None
    round: int
    rounds: int
    hand: tuple[Side, ...]
    layout: Layout
    laid: tuple[int, ...]
    building: tuple[Seat, ...]
    offers: tuple[Seat, ...]
    out: tuple[Seat, ...]
    points: tuple[tuple[int, ...], ...]
    last_round: tuple[BuiltLayout, ...]

    def __repr__(self) -> str:
        """Return the view on one screen. It shortens the layouts of the last round to their numbers of cards."""
        hand = [f"{side.card} {side.symbols}" for side in self.hand]
        lines = [
            f"UbongoView(seat={self.seat}, round={self.round} of {self.rounds},",
            *(f"  hand: {', '.join(hand[first : first + 5])}" for first in range(0, len(hand), 5)),
            *(
                f"  layout: {' '.join(map(str, map(tuple, self.layout[at : at + 3])))}"
                for at in range(0, len(self.layout), 3)
            ),
            f"  laid={self.laid}, building={self.building}, offers={self.offers}, out={self.out},",
            *(f"  points[{number}]: {points}" for number, points in enumerate(self.points)),
            f"  last_round: {len(self.last_round)} layouts)",
        ]
        return "\n".join(lines)


def view_of(state: UbongoState, seat: Seat | None) -> UbongoView:
    """Return the view of a seat. `None` is a spectator, which sees only open facts."""
    round_ = state.round
    return UbongoView(
        seat=seat,
        round=round_.number,
        rounds=round_.settings.rounds,
        hand=() if seat is None else round_.hands[seat],
        layout=() if seat is None else state.layouts[seat],
        laid=tuple(map(len, state.layouts)),
        building=tuple(sorted(state.building)),
        offers=tuple(sorted(state.offers)),
        out=tuple(sorted(state.out)),
        points=round_.points,
        last_round=round_.last_round,
    )
