"""The games of the product: one kit for each.

To add a game to the product, write its kit in a module here, with its codec and samples, and add it to `OWN_KITS`. A test
checks that every game of the referee has a complete kit (`tests/contract/test_kits.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from seatwise.errors import UsageError
from seatwise.kits.game_kit import GameKit
from seatwise.kits.hosted.installed_games import RefusedGame, find_installed_games
from seatwise.kits.hosted.kit import make_remote_kit
from seatwise.kits.ubongo import kit as ubongo_kit
from seatwise.kits.ugo import kit as ugo_kit
from seatwise_referee.games.registry import GAMES
from seatwise_referee.hosted.hosted_game import GameFault

OWN_KITS: Final[tuple[GameKit, ...]] = (ugo_kit.KIT, ubongo_kit.KIT)
"""The kits of the product's own games."""

DEFAULT_GAME: Final = OWN_KITS[0].name
"""The game where none is named."""

KITS: Final[dict[str, GameKit]] = {kit.name: kit for kit in OWN_KITS}
"""The kits of all games here by the names of their games: our own, and those of packages that are installed."""

REFUSED_GAMES: Final[list[RefusedGame]] = []
"""The games from outside that are installed and cannot be hosted."""


def _add_installed_games() -> None:
    found = find_installed_games(KITS)
    for kit in found.kits:
        add_kit(kit)
    REFUSED_GAMES.extend(found.refused)


def add_kit(kit: GameKit) -> None:
    """Add a game to those of this process, or replace it."""
    KITS[kit.name] = kit
    GAMES[kit.name] = kit.game


_add_installed_games()


def use_deck_files(files: Sequence[str], default_deck: str = "") -> None:
    """Add the decks in these files to those of this process. `default_deck` is used where no deck is named.

    Raises `UsageError`, which names the file and the line.
    """
    for kit in OWN_KITS:
        if kit.use_deck_files is not None:
            kit.use_deck_files(files, default_deck)


def find_kit(game: str) -> GameKit:
    """Return the kit of a game. Raises `UsageError`, which names the games, if there is none."""
    if game not in KITS:
        more = "; `seatwise games` says why others that are installed are not hosted" if REFUSED_GAMES else ""
        raise UsageError(f"{game}: no such game; there is {', '.join(KITS)}{more}")
    return KITS[game]


def find_server_kit(game: str) -> GameKit:
    """Return the kit for a bot that plays on a server: a game from outside need be installed there only.

    Raises `UsageError` if no game can have this name.
    """
    if game in KITS:
        return KITS[game]
    try:
        return make_remote_kit(game)
    except GameFault as fault:
        raise UsageError(str(fault)) from None
