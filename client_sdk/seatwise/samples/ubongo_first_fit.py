"""Lays the first card of the hand that fits, in the first place where it fits, until none does. It never takes one back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatwise import Bot
from seatwise.ubongo import GOAL, Call, Layout, OfferEnd, Side, View, fitting_places


class FirstFit(Bot):
    """Builds without a search."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd]:
        """Yield a layout after each card, then a call or an offer to end the round."""
        laid = 0
        for layout in lay_first_fits(view.hand):
            laid = len(layout)
            yield layout
        yield Call() if laid >= GOAL else OfferEnd(on=True)


def lay_first_fits(hand: Sequence[Side]) -> Iterator[Layout]:
    """Yield layouts, each with one card more, up to seven cards or until no card fits."""
    layout: Layout = ()
    left, symbols = [side.card for side in hand], dict(hand)
    while len(layout) < GOAL:
        places = (next(fitting_places(layout, card, symbols), None) for card in left)
        place = next(filter(None, places), None)
        if place is None:
            return
        left.remove(place.card)
        layout = (*layout, place)
        yield layout
