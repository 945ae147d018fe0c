"""UGO!, the game of tricks, lands and farmers."""

from seatwise_referee.games.ugo.cards import CARDS, Colour, UgoCard
from seatwise_referee.games.ugo.kingdoms import (
    MOST_FARMERS,
    Kingdom,
    default_order,
    farmers_by_section,
    has_choice,
    lay,
    score_kingdom,
    score_section,
)
from seatwise_referee.games.ugo.moves import Arrange, Play, UgoMove
from seatwise_referee.games.ugo.rules import Ugo
from seatwise_referee.games.ugo.state import UgoRound, UgoState, UgoTable
from seatwise_referee.games.ugo.tricks import Trick, farmers_gained, winner_of
from seatwise_referee.games.ugo.view import UgoView

__all__ = [
    "CARDS",
    "MOST_FARMERS",
    "Arrange",
    "Colour",
    "Kingdom",
    "Play",
    "Trick",
    "Ugo",
    "UgoCard",
    "UgoMove",
    "UgoRound",
    "UgoState",
    "UgoTable",
    "UgoView",
    "default_order",
    "farmers_by_section",
    "farmers_gained",
    "has_choice",
    "lay",
    "score_kingdom",
    "score_section",
    "winner_of",
]
