"""Searches for seven cards that fit, and lays the best layout found so far."""

from __future__ import annotations

from collections.abc import Iterator

from seatwise import Bot
from seatwise.samples.ubongo_solver import NODES, Search
from seatwise.ubongo import GOAL, Call, Layout, OfferEnd, View


class Solver(Bot):
    """Looks at a fixed number of layouts at most, so that it plays the same on every machine."""

    nodes = NODES
    """The most layouts that it looks at."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd]:
        """Yield layouts, each with more cards than the one before, then a call or an offer to end the round."""
        laid = 0
        for layout in Search(view.hand, self.nodes).find_layouts():
            laid = len(layout)
            yield layout
        yield Call() if laid >= GOAL else OfferEnd(on=True)
