"""Plays any legal card. This is the smallest possible bot."""

from __future__ import annotations

from seatwise import Bot, Card
from seatwise.ugo import View


class RandomCard(Bot):
    """Plays a random legal card."""

    def choose(self, view: View) -> Card:
        """Choose at random. `self.chance` makes the choice repeatable with a seed."""
        return self.chance.choice(view.legal_cards)
