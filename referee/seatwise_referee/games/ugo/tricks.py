"""One trick: what may be played, who takes it and which farmers it brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatwise_referee.games.ugo.cards import CARDS, COLOUR_MASKS, COLOURS, VALUES, Card

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatwise_referee.game import Seat


@dataclass(frozen=True, slots=True)
class Trick:
    """A finished trick."""

    leader: Seat
    cards: tuple[Card, ...]
    """In the order played, the leader's first."""

    winner: Seat
    laid: tuple[Card, ...]
    """In the order in which the winner laid them; empty until he has."""


def legal_mask(hand: int, trick: Sequence[Card]) -> int:
    """The cards of the hand that may be played: those of the led colour, or all if there are none (U9, U10)."""
    return (trick and hand & COLOUR_MASKS[trick[0] // VALUES]) or hand


# U11 and U12 in one number: twice the value, and one more in the led colour.
_STRENGTH: Final = tuple(tuple(2 * card.value + (card.colour is led) for card in CARDS) for led in COLOURS)


def winner_of(trick: Sequence[Card]) -> int:
    """Whose card wins, as its place in the order played: the highest value of whatever colour, of several
    the one in the led colour, else the one played first (U11 to U13).
    """
    strength = _STRENGTH[trick[0] // VALUES]
    return trick.index(max(trick, key=strength.__getitem__))  # of equals `max` takes the first: U13


_GAIN_OF_WINNER: Final = (0, 0, 0, 2, 2, 2, 1, 1, 0)
_GAIN_OF_LOSER_SAME_COLOUR: Final = (0, 1, 0, 0, 0, 0, 0, 0, 0)
_GAIN_OF_LOSER_OTHER_COLOUR: Final = (0, 2, 1, 0, 0, 0, 0, 0, 0)


def farmers_gained(trick: Sequence[Card]) -> tuple[int, ...]:
    """The farmers that each card brings its player, in the order played; nobody is full yet (U21, U22).

    A lost 1 or 2 is compared with the winning card, never with the led colour.
    """
    winner = winner_of(trick)
    best = trick[winner]
    gains = [_gain_of_loser(card, best) for card in trick]
    gains[winner] = _GAIN_OF_WINNER[best % VALUES]
    return tuple(gains)


def _gain_of_loser(card: Card, best: Card) -> int:
    """A 1 brings one farmer, a 2 none, and each one more if the winning card has another colour (U22)."""
    same_colour = card // VALUES == best // VALUES
    return (_GAIN_OF_LOSER_SAME_COLOUR if same_colour else _GAIN_OF_LOSER_OTHER_COLOUR)[card % VALUES]
