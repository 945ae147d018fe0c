"""Plays any card. The least that a bot can be."""

from __future__ import annotations

from seatwise import Bot, Card
from seatwise.ugo import View


class RandomCard(Bot):
    """Draws among the cards it may play."""

    def choose(self, view: View) -> Card:
        """Any legal card, by the chance that a seed makes repeatable."""
        return self.chance.choice(view.legal_cards)
