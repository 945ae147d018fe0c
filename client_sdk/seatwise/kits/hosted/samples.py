"""Plays any legal move of any game from outside."""

from __future__ import annotations

from typing import Any

from seatwise.bot import Bot
from seatwise.hosting import HostedView


class RandomMove(Bot):
    """Plays a random legal move."""

    def decide(self, view: HostedView) -> Any:
        """Choose at random. `self.chance` makes the choice repeatable with a seed."""
        return self.chance.choice(view.legal_moves)
