"""Student's t distribution: how wide an interval must be that rests on few independent observations.

It is written by hand on `math.lgamma`, `math.log` and `math.exp`, so that no numpy or scipy is needed and one log gives the
same published figures everywhere (see `numeric`). tests/competition/test_student_t.py holds it to printed tables. Numbers such as
26.7.1 name formulas of Abramowitz and Stegun, "Handbook of Mathematical Functions".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final

from seatwise_server.competition.numeric.linalg import add_up

CONFIDENCE: Final = 0.95
"""The level of every interval: it contains the true value in 95 of 100 seasons."""

_LEAST_DENOMINATOR = 1e-300
"""Replaces 0 in the continued fraction."""
_MOST_FRACTION_TERMS = 500


def student_cdf(value: float, freedom: float) -> float:
    """Return the probability of a value below `value`, for `freedom` degrees of freedom. By the incomplete beta function: 26.7.1."""
    half_tail = 0.5 * regularized_incomplete_beta(freedom / 2, 0.5, freedom / (freedom + value * value))
    return half_tail if value < 0 else 1 - half_tail


@lru_cache(maxsize=4096)
def student_quantile(probability: float, freedom: float) -> float:
    """Return the value below which the share `probability` lies. The probability must be 0.5 or more. Found by bisection."""
    low, high = 0.0, 2.0
    while student_cdf(high, freedom) < probability:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, freedom) < probability else (low, middle)
    return high


def half_width_errors(freedom: float) -> float:
    """Return how many standard errors an interval of the level `CONFIDENCE` reaches to each side, for `freedom` degrees of freedom."""
    return student_quantile((1 + CONFIDENCE) / 2, freedom)


def normal_quantile(probability: float) -> float:
    """Return the quantile of the normal distribution: Student's t with infinitely many degrees of freedom."""
    return NormalDist().inv_cdf(probability)


def regularized_incomplete_beta(a: float, b: float, x: float) -> float:
    """Return I_x(a, b), by its continued fraction (26.5.8) from the side on which that converges fast."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - regularized_incomplete_beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * _continued_fraction(a, b, x) / a


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction. The modified Lentz method uses ratios, which neither overflow nor vanish."""
    c, d = 1.0, 1 / _keep_off_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_FRACTION_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _keep_off_zero(1 + term * d)
            c = _keep_off_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _keep_off_zero(value: float) -> float:
    return value if abs(value) > _LEAST_DENOMINATOR else _LEAST_DENOMINATOR


# Computes how surprising a figure is, and how surprising it still is as the most surprising of many.

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

    By the recurrence that adds two degrees at a time, from one or two degrees, for which the tail has a closed form: 26.4.4 to 26.4.8.
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
