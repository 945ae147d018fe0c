"""Computes how surprising a figure is, and how surprising it still is as the most surprising of many."""

from __future__ import annotations

import math
from collections.abc import Sequence

from seatwise_server.competition.numeric.addition import add_up

SIGNIFICANCE_LEVEL = 0.05
"""A figure is called remarkable if at most one in twenty honest seasons has such a figure anywhere."""


def holm_correction(probabilities: Sequence[float], weights: Sequence[float] = ()) -> list[float]:
    """Return p-values corrected for their number, by Holm's method.

    If all at or below `SIGNIFICANCE_LEVEL` are named, at most that share of honest seasons has any named. `weights` divide that share
    among the tests; without them it is divided evenly. Source: S. Holm, "A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6 (1979).
    """
    weights = weights or [1.0] * len(probabilities)
    order = sorted(range(len(probabilities)), key=lambda number: probabilities[number] / weights[number])
    corrected, worst, left = [1.0] * len(probabilities), 0.0, add_up(weights)
    for number in order:
        worst = max(worst, min(1.0, probabilities[number] * max(left / weights[number], 1.0)))
        corrected[number] = worst
        left = max(left - weights[number], 0.0)
    return corrected


def chi_square_tail(value: float, freedom: int) -> float:
    """Return the probability that a chi-square variable with `freedom` degrees of freedom exceeds `value`.

    It uses the recurrence that adds two degrees at a time, from one or two degrees, for which the tail has a closed form.
    Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.4.4 to 26.4.8.
    """
    half = max(0.0, value) / 2
    if freedom % 2:
        tail, term, at = math.erfc(math.sqrt(half)), math.sqrt(half / math.pi) * 2 * math.exp(-half), 1
    else:
        tail, term, at = math.exp(-half), half * math.exp(-half), 2
    while at < freedom:
        tail += term
        at += 2
        term *= 2 * half / at
    return min(1.0, tail)
