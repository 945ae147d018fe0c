"""Plays as `greedy` does in half of all moves, and any legal card in the others."""

from __future__ import annotations

from seatwise import Card
from seatwise.samples.greedy import Greedy
from seatwise.ugo import View


class HalfGreedy(Greedy):
    """A level between `random` and `greedy`."""

    def choose(self, view: View) -> Card:
        """Choose at random in half of the moves."""
        if self.chance.random() < 0.5:
            return self.chance.choice(view.legal_cards)
        return super().choose(view)
