"""One trick: the legal cards, its winner, and the farmers that it brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from seatwise_referee.game import Seat
from seatwise_referee.games.ugo.cards import CARDS, COLOUR_MASKS, COLOURS, VALUES_PER_COLOUR, UgoCard

if TYPE_CHECKING:
    from collections.abc import Sequence


class Trick(NamedTuple):
    """A finished trick."""

    leader: Seat
    cards: tuple[UgoCard, ...]
    """The cards in the order played, the leader's first."""

    winner: Seat
    laid: tuple[UgoCard, ...]
    """The cards in the order in which the winner laid them; empty until it has laid them."""


def legal_mask(hand: int, trick: Sequence[UgoCard]) -> int:
    """Return the cards of the hand that may be played: those of the led colour, or all if it has none (U9, U10)."""
    return (trick and hand & COLOUR_MASKS[trick[0] // VALUES_PER_COLOUR]) or hand


# U11 and U12 in one number: twice the value, and one more in the led colour.
_CARD_STRENGTH: Final = tuple(
    tuple(2 * card.value + (card.colour is led) for card in CARDS) for led in COLOURS
)


def winner_of(trick: Sequence[UgoCard]) -> int:
    """Return which card wins the trick (U11 to U13).

    The highest value wins, whatever its colour. Of several highest cards the one in the led colour wins, and
    otherwise the one played first.

    Args:
        trick: The cards in the order played, at least one.

    Returns:
        The index of the winning card in `trick`.

    Example:
        >>> from seatwise.ugo import Card
        >>> winner_of([Card.parse("R3"), Card.parse("B8"), Card.parse("R8")])
        2
    """
    strength = _CARD_STRENGTH[trick[0] // VALUES_PER_COLOUR]
    return trick.index(max(trick, key=strength.__getitem__))  # of equal cards `max` takes the first: U13


_GAIN_OF_WINNER: Final = (0, 0, 0, 2, 2, 2, 1, 1, 0)
"""The farmers that each value brings if it wins (U21)."""


def _gain_of_loser(card: UgoCard, best: UgoCard) -> int:
    """Return the farmers of a losing card: one for a 1, none for a 2, one more if the best card has another colour (U22)."""
    if card.value not in (1, 2):
        return 0
    return (2 - card.value) + (card.colour is not best.colour)


_GAINS_OF_LOSERS: Final = tuple(tuple(_gain_of_loser(card, best) for card in CARDS) for best in CARDS)
"""The farmers of a losing card, by the winning card and the losing one."""


def farmers_gained(trick: Sequence[UgoCard], winner: int) -> list[int]:
    """Return the farmers that a trick brings to each player (U21, U22).

    Losing cards are compared with the winning card, never with the led colour. The numbers ignore the limit of nine
    farmers per seat, and the supply.

    Args:
        trick: The cards in the order played.
        winner: The index of the winning card in `trick`, as `winner_of` returns it.

    Returns:
        The number of farmers for each card, in the order played.

    Example:
        >>> from seatwise.ugo import Card
        >>> farmers_gained([Card.parse("R5"), Card.parse("B1")], winner=0)
        [2, 2]
    """
    best = trick[winner]
    gain_of_loser = _GAINS_OF_LOSERS[best]
    gains = [gain_of_loser[card] for card in trick]
    gains[winner] = _GAIN_OF_WINNER[best % VALUES_PER_COLOUR]
    return gains
