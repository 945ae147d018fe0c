"""Ubongo - Das Kartenspiel, the game in which all build at once."""

from seatwise_referee.games.ubongo.cards import CARDS, HAND_SIZE, Side, Symbols, UbongoCard, deck_of_round
from seatwise_referee.games.ubongo.decks import (
    DEFAULT_DIFFICULTY,
    HOUSE_DECK,
    HOUSE_DECKS,
    MAX_CHARACTERS,
    BadDeck,
    Deck,
    parse_deck,
)
from seatwise_referee.games.ubongo.geometry import (
    BOUND,
    Layout,
    Placement,
    Touch,
    cells,
    fitting_beside,
    is_fitting,
    touch,
)
from seatwise_referee.games.ubongo.legality import GOAL
from seatwise_referee.games.ubongo.listing import fitting_places
from seatwise_referee.games.ubongo.moves import (
    CALL,
    Call,
    Lay,
    OfferEnd,
    Stop,
    UbongoMove,
    layout_from_json,
    layout_to_json,
)
from seatwise_referee.games.ubongo.round_flow import call_together, end_round, is_layout_fitting, with_layouts
from seatwise_referee.games.ubongo.rules import ROUNDS, Ubongo
from seatwise_referee.games.ubongo.state import (
    BuiltLayout,
    UbongoRound,
    UbongoSettings,
    UbongoState,
    deal_hands,
    symbols_in,
)
from seatwise_referee.games.ubongo.view import UbongoView

__all__ = [
    "BOUND",
    "CALL",
    "CARDS",
    "DEFAULT_DIFFICULTY",
    "GOAL",
    "HAND_SIZE",
    "HOUSE_DECK",
    "HOUSE_DECKS",
    "MAX_CHARACTERS",
    "ROUNDS",
    "BadDeck",
    "BuiltLayout",
    "Call",
    "Deck",
    "Lay",
    "Layout",
    "OfferEnd",
    "Placement",
    "Side",
    "Stop",
    "Symbols",
    "Touch",
    "Ubongo",
    "UbongoCard",
    "UbongoMove",
    "UbongoRound",
    "UbongoSettings",
    "UbongoState",
    "UbongoView",
    "call_together",
    "cells",
    "deal_hands",
    "deck_of_round",
    "end_round",
    "fitting_beside",
    "fitting_places",
    "is_fitting",
    "is_layout_fitting",
    "layout_from_json",
    "layout_to_json",
    "parse_deck",
    "symbols_in",
    "touch",
    "with_layouts",
]
