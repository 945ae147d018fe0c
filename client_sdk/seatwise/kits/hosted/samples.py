"""Sample bots of games from outside: one that plays any legal move, and the levels that a game brings."""

from __future__ import annotations

from typing import Any

from seatwise.bot import Bot
from seatwise.hosting import Chance, HostedView
from seatwise.kits import KITS
from seatwise_referee.hosted.hosted_rules import HostedRules


class RandomMove(Bot):
    """Plays a random legal move."""

    def decide(self, view: HostedView) -> Any:
        """Choose at random. `self.chance` makes the choice repeatable with a seed."""
        return self.chance.choice(view.legal_moves)


def make_house_level(game: str, level: str) -> type[Bot]:
    """Return the class of a bot that plays as the game's own house bots of this level do. The game must be installed here."""

    class HouseLevel(Bot):
        """Plays one level of the house bots of a game from outside."""

        def decide(self, view: HostedView) -> Any:
            """Ask the game's function for this level."""
            rules: Any = KITS[game].game
            assert isinstance(rules, HostedRules)
            return rules.choose_move(level, view, Chance(self.chance.randbytes(32))).value

    return HouseLevel
