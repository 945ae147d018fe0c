"""Sample bots to play against and to learn from: for each game some of rising strength."""

from __future__ import annotations

from importlib import import_module
from typing import Final, cast

from seatwise.bot import Bot

_CLASSES: Final = {
    "ugo": {
        "random": ("seatwise.samples.random", "RandomCard"),
        "greedy": ("seatwise.samples.greedy", "Greedy"),
        "counting": ("seatwise.samples.counting", "Counting"),
    },
    "ubongo": {
        "random": ("seatwise.samples.ubongo_random", "RandomBuilder"),
        "solver": ("seatwise.samples.ubongo_solving", "Solver"),
    },
}

SAMPLES: Final = {game: tuple(classes) for game, classes in _CLASSES.items()}
"""The names of the samples by game, the weakest first."""


def sample(name: str, game: str = "ugo") -> type[Bot]:
    """Return the class of a sample.

    Args:
        name: Its name, as in `SAMPLES`.
        game: Its game, "ugo" or "ubongo".

    Returns:
        A class derived from `Bot`.

    Raises:
        KeyError: The game has no sample of this name.

    Example:
        >>> SAMPLES["ugo"]
        ('random', 'greedy', 'counting')
        >>> sample("greedy").__name__
        'Greedy'
    """
    module, cls = _CLASSES[game][name]
    return cast("type[Bot]", getattr(import_module(module), cls))
