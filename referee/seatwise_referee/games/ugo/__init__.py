"""UGO!, the game of tricks, lands and farmers."""

from seatwise_referee.games.ugo.cards import CARDS, Card, Colour
from seatwise_referee.games.ugo.kingdoms import (
    Kingdom,
    default_order,
    farmers_by_section,
    has_choice,
    lay,
    score_kingdom,
    score_section,
)
from seatwise_referee.games.ugo.moves import Arrange, Move, Play
from seatwise_referee.games.ugo.rules import Ugo
from seatwise_referee.games.ugo.state import Round, State, Table
from seatwise_referee.games.ugo.tricks import Trick, farmers_gained, winner_of
from seatwise_referee.games.ugo.view import View

__all__ = [
    "CARDS",
    "Arrange",
    "Card",
    "Colour",
    "Kingdom",
    "Move",
    "Play",
    "Round",
    "State",
    "Table",
    "Trick",
    "Ugo",
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
