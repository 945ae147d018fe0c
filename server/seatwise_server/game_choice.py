"""Which games a referee plays: those of the product, those from outside, or all."""

from __future__ import annotations

from enum import StrEnum

from seatwise.kits import KITS, OWN_KITS


class GameKind(StrEnum):
    """The origin of a game. Matches of each kind wait for a referee in a list of their own."""

    OWN = "own"
    """The games of the product."""
    HOSTED = "hosted"
    """Games from outside, whose code is not trusted with time or memory."""


ALL_KINDS = tuple(GameKind)


class GameChoice(StrEnum):
    """The games that one referee plays: those of one kind, or all."""

    ALL = "all"
    OWN = "own"
    HOSTED = "hosted"

    @property
    def kinds(self) -> tuple[GameKind, ...]:
        """The kinds of games that such a referee plays."""
        return ALL_KINDS if self is GameChoice.ALL else (GameKind(self.value),)


def is_hosted_game(name: str) -> bool:
    """Return whether this is a game from outside: "games/leduc", or "leduc". Only its referee may run its code."""
    game = name.removeprefix("games/")
    return game not in {kit.name for kit in OWN_KITS}


def kind_of_game(name: str) -> GameKind:
    """Return the kind of this game; OWN for an empty name, the game of a match that is not known any more."""
    return GameKind.HOSTED if name and is_hosted_game(name) else GameKind.OWN


def has_hosted_games() -> bool:
    """Return whether games from outside are installed."""
    return any(kit.is_hosted for kit in KITS.values())
