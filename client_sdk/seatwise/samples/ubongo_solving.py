"""Searches for seven cards that fit, and lays the best layout found so far."""

from __future__ import annotations

from collections.abc import Iterator

from seatwise import Bot
from seatwise.samples.ubongo_solver import NODES, Search
from seatwise.ubongo import GOAL, Call, Layout, OfferEnd, Thought, View

LOOK_MS = 3
"""Virtual time for each layout that it looks at, in milliseconds. So a harder hand takes longer."""


class Solver(Bot):
    """Looks at a fixed number of layouts at most, so that it plays the same on every machine."""

    nodes = NODES
    """The most layouts that it looks at."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd | Thought]:
        """Yield layouts, each with more cards than the one before, then a call or an offer to end the round."""
        search, looked_at, laid = Search(view.hand, self.nodes), 0, 0
        for layout in search.find_layouts():
            laid = len(layout)
            yield Thought(LOOK_MS * (self.nodes - search.nodes_left - looked_at))
            looked_at = self.nodes - search.nodes_left
            yield layout
        yield Thought(LOOK_MS * (self.nodes - search.nodes_left - looked_at))
        yield Call() if laid >= GOAL else OfferEnd(on=True)
