"""Sequential tests: play on until one of two hypotheses is so much likelier that the errors are as small as was asked for.

Wald's bounds decide; the ratio is the generalised one, in which everything but the mean takes its likeliest value. For points a
match that is the spread of a normal distribution; for outcomes of few kinds it is their whole distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

UNSEEN_COUNT: Final = 1e-3
"""Stands for an outcome that has not occurred: no likelihood is 0 then."""


LARGEST_RATIO: Final = 1000.0
"""A ratio beyond all bounds, and yet a number that can be written down."""


class SprtVerdict(StrEnum):
    """What is accepted."""

    OPEN = "open"
    H0 = "H0"
    H1 = "H1"


def wald_bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Below the first H0 is accepted, above the second H1."""
    return math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)


def decide_by_ratio(ratio: float, alpha: float, beta: float) -> SprtVerdict:
    """What a logarithm of the likelihood ratio says."""
    low, high = wald_bounds(alpha, beta)
    return SprtVerdict.H0 if ratio <= low else SprtVerdict.H1 if ratio >= high else SprtVerdict.OPEN


# Points


@dataclass(frozen=True, slots=True)
class PointsTest:
    """H0: A makes no more points than B. H1: A makes `least_points` more."""

    least_points: float = 2.0
    alpha: float = 0.05
    """How often H1 is accepted where both are alike."""
    beta: float = 0.05
    """How often H0 is accepted where A makes so many more."""
    least_units: int = 16
    """Before that no verdict: the spread of a few differences says little about that of all."""

    def __post_init__(self) -> None:
        if self.least_points <= 0:
            raise ValueError(f"least_points: must be more than 0, not {self.least_points}")
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0 < value < 0.5:
                raise ValueError(f"{name}: must be between 0 and 0.5, not {value}")

    def first_verdict(self, differences: Iterable[float]) -> SprtVerdict:
        """The first that there is, unit by unit."""
        return self.run_test(differences)[1]

    def run_test(self, differences: Iterable[float]) -> tuple[tuple[float, ...], SprtVerdict]:
        """The ratio after each unit, up to the verdict."""
        ratios: list[float] = []
        total = squares = 0.0
        for number, difference in enumerate(differences, 1):
            total, squares = total + difference, squares + difference * difference
            ratios.append(normal_log_ratio(number, total, squares, (0.0, self.least_points)))
            verdict = decide_by_ratio(ratios[-1], self.alpha, self.beta)
            if number >= self.least_units and verdict is not SprtVerdict.OPEN:
                return tuple(ratios), verdict
        return tuple(ratios), SprtVerdict.OPEN


def normal_log_ratio(count: int, total: float, squares: float, means: tuple[float, float]) -> float:
    """Log of the likelihood at the second mean over that at the first, by the sums of so many values and of their squares.

    Each mean takes the spread that suits it best: the mean square around it.
    """
    around = [squares / count - 2 * mean * total / count + mean * mean for mean in means]
    if min(around) <= 0:  # all values are one of the means, or next to it
        return 0.0 if around[0] == around[1] else math.copysign(LARGEST_RATIO, around[0] - around[1])
    return count / 2 * math.log(around[0] / around[1])


# Outcomes of few kinds: won, drawn, lost; or the five sums of two of them


def expected_score(elo: float) -> float:
    """Of the stronger of two, from 0 to 1: the logistic scale of chess."""
    return 1 / (1 + 10 ** (-elo / 400))


def outcome_log_ratio(counts: Sequence[int], elos: tuple[float, float]) -> float:
    """The same for outcomes that are worth 0 to 1 in equal steps: three for matches, five for pairs of them."""
    seen = [max(float(count), UNSEEN_COUNT) for count in counts]
    total = sum(seen)
    shares = [count / total for count in seen]
    values = [step / (len(counts) - 1) for step in range(len(counts))]
    first, second = (_likeliest_tilts(shares, values, expected_score(elo)) for elo in elos)
    return total * sum(
        share * math.log(low / high) for share, low, high in zip(shares, first, second, strict=True)
    )


def _likeliest_tilts(shares: Sequence[float], values: Sequence[float], mean: float) -> list[float]:
    """The likeliest shares that have this mean are the seen ones, each divided by its tilt, 1 + t (value - mean)."""

    def pull(tilt: float) -> float:
        return sum(
            share * (value - mean) / (1 + tilt * (value - mean))
            for share, value in zip(shares, values, strict=True)
        )

    tilt = _find_root(pull, -1 / (values[-1] - mean), -1 / (values[0] - mean))
    return [1 + tilt * (value - mean) for value in values]


def _find_root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0, between two ends where it has no value."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
