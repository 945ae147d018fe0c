"""UGO! for authors of bots: cards, views, and the arithmetic of the rules.

A card is an `int` that prints as its name. These are the functions of the referee itself, so a bot can compute what a
trick would bring:

    >>> from seatwise.ugo import Card, Kingdom, farmers_gained, lay, score_kingdom, winner_of
    >>> trick = [Card.parse(text) for text in ("R3", "R5", "B1")]
    >>> trick[winner_of(trick)]
    R5
    >>> farmers_gained(trick, winner_of(trick))
    [0, 2, 2]
    >>> kingdom = lay(Kingdom(), trick)
    >>> kingdom.tops
    (R5, B1, None, None, None)
    >>> score_kingdom(kingdom)
    6
"""

from seatwise_referee.games.ugo import (
    CARDS,
    MOST_FARMERS,
    Colour,
    Kingdom,
    Trick,
    default_order,
    farmers_by_section,
    farmers_gained,
    has_choice,
    lay,
    score_kingdom,
    score_section,
    winner_of,
)
from seatwise_referee.games.ugo import UgoCard as Card
from seatwise_referee.games.ugo import UgoView as View

__all__ = [
    "CARDS",
    "MOST_FARMERS",
    "Card",
    "Colour",
    "Kingdom",
    "Trick",
    "View",
    "default_order",
    "farmers_by_section",
    "farmers_gained",
    "has_choice",
    "lay",
    "score_kingdom",
    "score_section",
    "winner_of",
]
