"""Lays any card wherever it fits, begins anew when none does, and keeps the best of it."""

from __future__ import annotations

from collections.abc import Iterator

from seatwise import Bot
from seatwise.ubongo import GOAL, Call, Layout, OfferEnd, Side, Thought, View, fitting_places

TRIES = 20
"""So often it begins a layout; then it is content with its best."""

LOOK_MS = 4
"""What it is charged for each card it tries, where time is virtual: who looks for a place at random is slow."""


class RandomBuilder(Bot):
    """Builds at random, and offers the end when it has tried often enough."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd | Thought]:
        """Every layout that has more cards than those before; a call with seven."""
        best = 0
        for _ in range(TRIES):
            for layout in self._grown(view.hand):
                yield Thought(LOOK_MS)
                if len(layout) > best:
                    best = len(layout)
                    yield layout
                if best >= GOAL:
                    yield Call()
                    return
        yield OfferEnd(on=True)

    def _grown(self, hand: tuple[Side, ...]) -> Iterator[Layout]:
        layout: Layout = ()
        left, symbols = [side.card for side in hand], dict(hand)
        while left:
            card = self.chance.choice(left)
            left.remove(card)
            if places := list(fitting_places(layout, card, symbols)):
                layout = (*layout, self.chance.choice(places))
            yield layout
