"""Ubongo for bot authors: cards, views, layouts and the rules' own geometry."""

from seatwise.building import Thought
from seatwise.drawing import draw
from seatwise_referee.games.ubongo import (
    BOUND,
    CARDS,
    GOAL,
    HAND,
    Built,
    Call,
    Card,
    Lay,
    Layout,
    OfferEnd,
    Placement,
    Side,
    Symbols,
    Touch,
    View,
    cells,
    fitting_beside,
    fitting_places,
    is_fitting,
    touch,
)
from seatwise_referee.games.ubongo.geometry import overlapping

__all__ = [
    "BOUND",
    "CARDS",
    "GOAL",
    "HAND",
    "Built",
    "Call",
    "Card",
    "Lay",
    "Layout",
    "OfferEnd",
    "Placement",
    "Side",
    "Symbols",
    "Thought",
    "Touch",
    "View",
    "cells",
    "draw",
    "fitting_beside",
    "fitting_places",
    "is_fitting",
    "overlapping",
    "touch",
]
