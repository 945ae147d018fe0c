"""Ubongo - Das Kartenspiel, the game in which all build at once."""

from seatwise_referee.games.ubongo.cards import CARDS, HAND, Card, Side, Symbols, deck_of_round
from seatwise_referee.games.ubongo.course import call_together, end_round, fits, with_layouts
from seatwise_referee.games.ubongo.decks import HOUSE, BadDeck, Deck, parse_deck
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
    Move,
    OfferEnd,
    Stop,
    layout_from_json,
    layout_to_json,
)
from seatwise_referee.games.ubongo.rules import ROUNDS, Ubongo
from seatwise_referee.games.ubongo.state import Built, Course, Round, State, dealt, symbols_in
from seatwise_referee.games.ubongo.view import View

__all__ = [
    "BOUND",
    "CALL",
    "CARDS",
    "GOAL",
    "HAND",
    "HOUSE",
    "ROUNDS",
    "BadDeck",
    "Built",
    "Call",
    "Card",
    "Course",
    "Deck",
    "Lay",
    "Layout",
    "Move",
    "OfferEnd",
    "Placement",
    "Round",
    "Side",
    "State",
    "Stop",
    "Symbols",
    "Touch",
    "Ubongo",
    "View",
    "call_together",
    "cells",
    "dealt",
    "deck_of_round",
    "end_round",
    "fits",
    "fitting_beside",
    "fitting_places",
    "is_fitting",
    "layout_from_json",
    "layout_to_json",
    "parse_deck",
    "symbols_in",
    "touch",
    "with_layouts",
]
