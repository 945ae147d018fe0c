"""Lays random cards wherever they fit, starts again when none fits, and keeps its best layout."""

from __future__ import annotations

from collections.abc import Iterator

from seatwise import Bot
from seatwise.ubongo import GOAL, Call, Layout, OfferEnd, Side, View, fitting_places

TRIES = 3
"""The number of layouts that it starts. After that it keeps its best one."""


class RandomBuilder(Bot):
    """Builds at random, and offers to end the round after its last try."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd]:
        """Yield each layout that has more cards than all before, and call with seven cards."""
        best = 0
        for _ in range(TRIES):
            for layout in self._grow_layout(view.hand):
                if len(layout) > best:
                    best = len(layout)
                    yield layout
                if best >= GOAL:
                    yield Call()
                    return
        yield OfferEnd(on=True)

    def _grow_layout(self, hand: tuple[Side, ...]) -> Iterator[Layout]:
        layout: Layout = ()
        left, symbols = [side.card for side in hand], dict(hand)
        while left:
            card = self.chance.choice(left)
            left.remove(card)
            if places := list(fitting_places(layout, card, symbols)):
                layout = (*layout, self.chance.choice(places))
            yield layout
