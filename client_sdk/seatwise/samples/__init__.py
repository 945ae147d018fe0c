"""Sample bots to play against and to learn from: for each game some of rising strength."""

from __future__ import annotations

from importlib import import_module
from typing import Final, cast

from seatwise.bot import Bot
from seatwise.kits import DEFAULT_GAME, KITS, find_server_kit

SAMPLES: Final = {game: tuple(kit.samples) for game, kit in KITS.items()}
"""The names of the samples by game, the weakest first."""


def sample(name: str, game: str = DEFAULT_GAME) -> type[Bot]:
    """Return the class of a sample.

    Args:
        name: Its name, as in `SAMPLES`.
        game: Its game, as in "ugo".

    Returns:
        A class derived from `Bot`.

    Raises:
        KeyError: The game has no sample of this name.

    Example:
        >>> SAMPLES["ugo"][:5]
        ('random', 'half-greedy', 'greedy', 'counting', 'counting-ahead')
        >>> sample("greedy").__name__
        'Greedy'
    """
    module, _, cls = find_server_kit(game).samples[name].partition(":")
    found = getattr(import_module(module), cls)
    return cast("type[Bot]", found if isinstance(found, type) else found(game, name))
