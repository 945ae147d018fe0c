"""Searches for seven cards that fit, and lays the best it has found so far."""

from __future__ import annotations

from collections.abc import Iterator

from seatwise import Bot
from seatwise.samples.ubongo_solver import NODES, Search
from seatwise.ubongo import GOAL, Call, Layout, OfferEnd, Thought, View

LOOK_MS = 3
"""What it is charged for each layout it looks at, where time is virtual: so the hands make a difference."""


class Solver(Bot):
    """Looks at so many layouts and no more, so that it does the same on every machine."""

    nodes = NODES

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd | Thought]:
        """Each layout has more cards than the one before; a call with seven, or the offer to end the round."""
        search, looked_at, laid = Search(view.hand, self.nodes), 0, 0
        for layout in search.layouts():
            laid = len(layout)
            yield Thought(LOOK_MS * (self.nodes - search.nodes_left - looked_at))
            looked_at = self.nodes - search.nodes_left
            yield layout
        yield Thought(LOOK_MS * (self.nodes - search.nodes_left - looked_at))
        yield Call() if laid >= GOAL else OfferEnd(on=True)
