"""Three bots of rising strength, to play against and to learn from."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from seatwise.bot import Bot

_CLASSES = {
    "random": ("seatwise.samples.random", "RandomCard"),
    "greedy": ("seatwise.samples.greedy", "Greedy"),
    "counting": ("seatwise.samples.counting", "Counting"),
}

SAMPLES = tuple(_CLASSES)
"""Their names, the weakest first."""


def sample(name: str) -> type[Bot]:
    """The class of that name; `KeyError` if there is none."""
    module, cls = _CLASSES[name]
    return cast("type[Bot]", getattr(import_module(module), cls))
