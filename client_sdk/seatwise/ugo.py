"""UGO! for bot authors: cards, views and the rules' own arithmetic."""

from seatwise_referee.games.ugo import (
    CARDS,
    Card,
    Colour,
    Kingdom,
    Trick,
    View,
    default_order,
    farmers_by_section,
    farmers_gained,
    has_choice,
    lay,
    score_kingdom,
    score_section,
    winner_of,
)

__all__ = [
    "CARDS",
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
