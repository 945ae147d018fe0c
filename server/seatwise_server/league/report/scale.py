"""Axes: turn values into positions on paper, and choose round numbers for their labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

STEPS = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis; `start` and `end` are the positions of `low` and `high`."""

    low: float
    high: float
    start: float
    end: float

    def position_of(self, value: float) -> float:
        """Return the position at which the value is drawn."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, count: int = 5) -> list[float]:
        """Return about `count` round numbers within the axis."""
        step = _round_step((self.high - self.low) / count)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def scale_for(values: Iterable[float], start: float, end: float) -> Scale:
    """Make an axis for all values, with a little room at both ends."""
    known = list(values) or [0.0, 1.0]
    low, high = min(known), max(known)
    room = (high - low) * 0.05 or 1.0
    return Scale(low - room, high + room, start, end)


def format_tick(value: float) -> str:
    """Return the label of a tick."""
    return (
        f"{value:.0f}"
        if value == round(value)
        else f"{value:.1f}"
        if value * 10 == round(value * 10)
        else f"{value:.2f}"
    )


def _round_step(about: float) -> float:
    power = 10.0 ** math.floor(math.log10(about))
    return power * next(step for step in STEPS if about <= step * power * 1.0001)
