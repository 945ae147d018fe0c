"""Keeps a few layouts of each size, and adds a card to each of them: a beam search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatwise import Bot
from seatwise.ubongo import (
    GOAL,
    Call,
    Card,
    Layout,
    OfferEnd,
    Placement,
    Side,
    Symbols,
    View,
    fitting_beside,
    fitting_places,
)

WIDTH = 2
"""The number of layouts of each size that it keeps."""


class Beam(Bot):
    """Searches in breadth. It may lose the only way to seven cards."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd]:
        """Yield a layout of each size, then a call or an offer to end the round."""
        laid = 0
        for layout in widen_layouts(view.hand):
            laid = len(layout)
            yield layout
        yield Call() if laid >= GOAL else OfferEnd(on=True)


def widen_layouts(hand: Sequence[Side], width: int = WIDTH) -> Iterator[Layout]:
    """Yield a layout of each size, up to seven cards or until no layout can grow.

    It keeps the layouts of the cards that fit the fewest others, so that the cards that fit many are left for later.
    """
    symbols = dict(hand)
    fits = {card: _count_fits(card, symbols) for card in symbols}
    grown: list[Layout] = [(Placement(card, 0, 0, 0),) for card in symbols]
    while grown:
        kept = sorted(grown, key=lambda layout: sum(fits[placed.card] for placed in layout))[:width]
        yield kept[0]
        if len(kept[0]) == GOAL:
            return
        larger = ((*layout, place) for layout in kept for place in _places_to_add(layout, symbols))
        grown = list({frozenset(layout): layout for layout in larger}.values())


def _count_fits(card: Card, symbols: Mapping[Card, Symbols]) -> int:
    """Return in how many ways the card fits beside the others."""
    middle = Placement(card, 0, 0, 0)
    return sum(
        1
        for other in symbols
        if other != card
        for _ in fitting_beside(middle, symbols[card], other, symbols[other])
    )


def _places_to_add(layout: Layout, symbols: Mapping[Card, Symbols]) -> Iterator[Placement]:
    laid = {placed.card for placed in layout}
    for card in symbols:
        if card not in laid:
            yield from fitting_places(layout, card, symbols)
