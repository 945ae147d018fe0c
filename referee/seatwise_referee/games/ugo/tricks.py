"""One trick: what may be played, who takes it and which farmers it brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from seatwise_referee.games.ugo.cards import CARDS, COLOUR_MASKS, COLOURS, VALUES, Card

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatwise_referee.game import Seat


class Trick(NamedTuple):
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
"""By value (U21)."""


def _gain_of_loser(card: Card, best: Card) -> int:
    """A lost 1 brings one farmer, a lost 2 none; each one more if the best card has another colour (U22)."""
    if card.value not in (1, 2):
        return 0
    return (2 - card.value) + (card.colour is not best.colour)


_GAINS_OF_LOSERS: Final = tuple(tuple(_gain_of_loser(card, best) for card in CARDS) for best in CARDS)
"""By the winning card and the lost one."""


def farmers_gained(trick: Sequence[Card], winner: int) -> list[int]:
    """The farmers due to each player, in the order played, if only there is room (U21, U22).

    Lost cards are compared with the winning card, never with the led colour.
    """
    best = trick[winner]
    gain_of_loser = _GAINS_OF_LOSERS[best]
    gains = [gain_of_loser[card] for card in trick]
    gains[winner] = _GAIN_OF_WINNER[best % VALUES]
    return gains
