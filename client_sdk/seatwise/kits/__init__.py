"""The games that the SDK can play: one kit for each.

To add a game, write its kit in a module here, with its codec and samples, and add it to `KITS`. A test checks that every
game of the referee has a complete kit (`tests/contract/test_kits.py`).
"""

from __future__ import annotations

from typing import Final

from seatwise.bot_errors import UsageError
from seatwise.kits import ubongo_kit, ugo_kit
from seatwise.kits.game_kit import GameKit

KITS: Final[dict[str, GameKit]] = {kit.name: kit for kit in (ugo_kit.KIT, ubongo_kit.KIT)}
"""The kits by the names of their games."""


def find_kit(game: str) -> GameKit:
    """Return the kit of a game. Raises `UsageError`, which names the games, if there is none."""
    if game not in KITS:
        raise UsageError(f"{game}: no such game; there is {', '.join(KITS)}")
    return KITS[game]
