"""How surprising a figure is, and how surprising it still is when it is the most surprising of many."""

from __future__ import annotations

import math
from collections.abc import Sequence

SIGNIFICANCE_LEVEL = 0.05
"""What is called remarkable would turn up in one of twenty honest seasons, anywhere in it."""


def holm_correction(probabilities: Sequence[float]) -> list[float]:
    """Holm's correction: with all at or below `LEVEL` named, an honest season names any in no more than `LEVEL` of all cases."""
    corrected, worst = [1.0] * len(probabilities), 0.0
    for place, number in enumerate(sorted(range(len(probabilities)), key=probabilities.__getitem__)):
        worst = max(worst, min(1.0, (len(probabilities) - place) * probabilities[number]))
        corrected[number] = worst
    return corrected


def chi_square_tail(value: float, freedom: int) -> float:
    """The probability of more than this; by steps of two from one or two degrees of freedom, where it is known."""
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
