"""Bots to play against and to learn from, for each game some of rising strength."""

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
"""Their names by game, the weakest first."""


def sample(name: str, game: str = "ugo") -> type[Bot]:
    """The class of that name; `KeyError` if the game has none."""
    module, cls = _CLASSES[game][name]
    return cast("type[Bot]", getattr(import_module(module), cls))
