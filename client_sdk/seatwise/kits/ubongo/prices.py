"""The geometry of Ubongo with a price for each call, so that a bot that searches more pays more at a local table.

The prices are about what the functions take on one core of a laptop. They are the same on every machine. A server measures
real time, and charges none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from typing import Final

from seatwise.kits.game_kit import WORK
from seatwise_referee.games import ubongo
from seatwise_referee.games.ubongo import Layout, Placement, Symbols, Touch, UbongoCard, geometry

TOUCH_US: Final = 1
"""The price of `touch`, in microseconds of virtual time."""

FITTING_BESIDE_US: Final = 5
"""The price of `fitting_beside`; of `fitting_places` the price for each laid card, and at least for one."""

LAYOUT_CARD_US: Final = 1
"""The price of `is_fitting` and of `overlapping` for each card of the layout."""


@wraps(ubongo.touch)
def touch(one: Placement, symbols: Symbols, other: Placement, other_symbols: Symbols) -> Touch:
    WORK.spent_us += TOUCH_US
    return ubongo.touch(one, symbols, other, other_symbols)


@wraps(ubongo.fitting_beside)
def fitting_beside(
    placed: Placement, symbols: Symbols, card: UbongoCard, card_symbols: Symbols
) -> Iterator[Placement]:
    WORK.spent_us += FITTING_BESIDE_US
    return ubongo.fitting_beside(placed, symbols, card, card_symbols)


@wraps(ubongo.fitting_places)
def fitting_places(
    layout: Layout, card: UbongoCard, symbols: Mapping[UbongoCard, Symbols]
) -> Iterator[Placement]:
    WORK.spent_us += FITTING_BESIDE_US * max(1, len(layout))
    return ubongo.fitting_places(layout, card, symbols)


@wraps(ubongo.is_fitting)
def is_fitting(layout: Sequence[Placement], symbols: Mapping[UbongoCard, Symbols]) -> bool:
    WORK.spent_us += LAYOUT_CARD_US * len(layout)
    return ubongo.is_fitting(layout, symbols)


@wraps(geometry.overlapping)
def overlapping(layout: Sequence[Placement]) -> tuple[Placement, Placement] | None:
    WORK.spent_us += LAYOUT_CARD_US * len(layout)
    return geometry.overlapping(layout)
