"""The games of the product: one kit for each.

To add a game to the product, write its kit in a module here, with its codec and samples, and add it to `OWN_KITS`. A test
checks that every game of the referee has a complete kit (`tests/contract/test_kits.py`).
"""

from __future__ import annotations

from typing import Final

from seatwise.bot_errors import UsageError
from seatwise.kits import ubongo_kit, ugo_kit
from seatwise.kits.game_kit import GameKit

OWN_KITS: Final[tuple[GameKit, ...]] = (ugo_kit.KIT, ubongo_kit.KIT)
"""The kits of the product's own games."""

DEFAULT_GAME: Final = OWN_KITS[0].name
"""The game where none is named."""

KITS: Final[dict[str, GameKit]] = {kit.name: kit for kit in OWN_KITS}
"""The kits by the names of their games."""


def find_kit(game: str) -> GameKit:
    """Return the kit of a game. Raises `UsageError`, which names the games, if there is none."""
    if game not in KITS:
        raise UsageError(f"{game}: no such game; there is {', '.join(KITS)}")
    return KITS[game]
