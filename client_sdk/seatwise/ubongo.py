"""Ubongo for authors of bots: cards, views, layouts, and the geometry of the rules.

These are the functions of the referee itself, so a bot can check a layout before it yields it. At a local table each call
has a price in virtual time (`seatwise.kits.ubongo.prices`):

    >>> from seatwise.ubongo import Card, Placement, fitting_beside, is_fitting
    >>> one, other = Card.parse("1-01"), Card.parse("1-02")
    >>> symbols = {one: "ABCDEF", other: "DXFXXX"}
    >>> first = Placement(one, 0, 0, 0)
    >>> second = next(fitting_beside(first, symbols[one], other, symbols[other]))
    >>> second
    Placement(card=1-02, x=2, y=1, turn=0)
    >>> is_fitting((first, second), symbols)
    True
"""

from seatwise.kits.race_steps import Thought
from seatwise.kits.ubongo.prices import fitting_beside, fitting_places, is_fitting, overlapping, touch
from seatwise.kits.ubongo.text import draw
from seatwise_referee.games.ubongo import (
    BOUND,
    CARDS,
    GOAL,
    Call,
    Lay,
    Layout,
    OfferEnd,
    Placement,
    Side,
    Symbols,
    Touch,
    cells,
)
from seatwise_referee.games.ubongo import HAND_SIZE as HAND
from seatwise_referee.games.ubongo import BuiltLayout as Built
from seatwise_referee.games.ubongo import UbongoCard as Card
from seatwise_referee.games.ubongo import UbongoView as View

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
