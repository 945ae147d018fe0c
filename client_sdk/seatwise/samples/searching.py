"""Searches for the best card with the compiled rules. These samples need the optional package `seatwise_fast`.

The search is IS-MCTS over deals that the view allows. With a number of iterations and a seed a match repeats itself;
`search-time` takes half of the time limit instead. At a table with a time limit no search takes longer than that.
"""

from __future__ import annotations

from typing import ClassVar

from seatwise import Card
from seatwise.samples.greedy import Greedy
from seatwise.samples.search_limit import SEARCH_LIMIT
from seatwise.ugo import View

HOME_LIMIT_MS = 1000
"""The time limit of `search-time` at a local table, where no time runs out: that of a casual queue."""


class Searching(Greedy):
    """Plays the card that a search prefers; if other searches leave it no time, the one that `greedy` prefers."""

    iterations: ClassVar[int | None] = None
    """The number of iterations; `None` searches for half of the time limit."""

    def choose(self, view: View) -> Card:
        """Search, as far as time allows."""
        if len(view.legal_cards) == 1:
            return view.legal_cards[0]
        seed = self.chance.getrandbits(64)
        with SEARCH_LIMIT.take_slot(self.longest_s()) as seconds:
            if seconds is None:
                return super().choose(view)
            return self.search(view, seconds, seed)

    def longest_s(self) -> float:
        """Return half of the time limit, in seconds; 0 if there is none."""
        limit_ms = self.time.move_ms or (HOME_LIMIT_MS if self.iterations is None else 0)
        return limit_ms / 2000

    def search(self, view: View, seconds: float, seed: int) -> Card:
        """Search for at most so many seconds; 0 for no limit."""
        from seatwise_fast import search_card

        return search_card(view, self.iterations, seconds, seed).card


class Search500(Searching):
    """Searches with 500 iterations."""

    iterations = 500


class Search2000(Searching):
    """Searches with 2,000 iterations."""

    iterations = 2000


class SearchTime(Searching):
    """Searches for half of the time limit."""
