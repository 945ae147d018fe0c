"""Sequential probability ratio tests: they continue until one hypothesis is likely enough for the error rates.

Wald's bounds decide. The ratio is the generalised one: everything but the mean takes its likeliest value. For
points per match that is the variance of a normal distribution. For few kinds of outcomes it is their whole
distribution.

Sources: A. Wald, "Sequential Tests of Statistical Hypotheses" (1945). The outcome test is that of the chess engine
testing tools fastchess and fishtest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from seatwise_server.competition.numeric.linalg import add_up

UNSEEN_COUNT: Final = 1e-3
"""The count of an outcome that has not occurred, so that no likelihood is 0."""


LARGEST_RATIO: Final = 1000.0
"""Replaces an infinite log ratio. It is beyond all bounds, and JSON can hold it."""

MOST_LEAST_POINTS: Final = 1000.0
"""A test asks for a smaller difference than this. No game has as many points, and the squares of very large ones overflow."""


class SprtVerdict(StrEnum):
    """The verdict of a test: the accepted hypothesis, or none yet."""

    OPEN = "open"
    H0 = "H0"
    H1 = "H1"


def wald_bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Return the two bounds of the log ratio: H0 is accepted at or below the first, H1 at or above the second."""
    return math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)


def decide_by_ratio(ratio: float, alpha: float, beta: float) -> SprtVerdict:
    """Return the verdict for this log of the likelihood ratio."""
    low, high = wald_bounds(alpha, beta)
    return SprtVerdict.H0 if ratio <= low else SprtVerdict.H1 if ratio >= high else SprtVerdict.OPEN


# Points


@dataclass(frozen=True, slots=True)
class PointsTest:
    """A test of mean points. H0: A makes no more points than B. H1: A makes `least_points` more."""

    least_points: float = 2.0
    alpha: float = 0.05
    """How often H1 is accepted if both are equally strong."""
    beta: float = 0.05
    """How often H0 is accepted if A makes `least_points` more."""
    least_units: int = 16
    """The fewest units before a verdict, because few differences say little about the spread of all."""

    def __post_init__(self) -> None:
        if not 0 < self.least_points < MOST_LEAST_POINTS:
            raise ValueError(
                f"least_points: must be between 0 and {MOST_LEAST_POINTS:g}, not {self.least_points}"
            )
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0 < value < 0.5:
                raise ValueError(f"{name}: must be between 0 and 0.5, not {value}")

    def first_verdict(self, differences: Iterable[float]) -> SprtVerdict:
        """Return the first verdict that the differences give, unit by unit."""
        return self.run_test(differences)[1]

    def run_test(self, differences: Iterable[float]) -> tuple[tuple[float, ...], SprtVerdict]:
        """Return the log ratio after each unit, up to the verdict, and the verdict."""
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
    """Return the log of the likelihood of the second mean over that of the first.

    `total` and `squares` are the sums of the `count` values and of their squares. Each mean takes the variance that suits it
    best: the mean square around it.
    """
    around = [squares / count - 2 * mean * total / count + mean * mean for mean in means]
    if min(around) <= 0:  # all values equal one of the means, or nearly so
        return 0.0 if around[0] == around[1] else math.copysign(LARGEST_RATIO, around[0] - around[1])
    return count / 2 * math.log(around[0] / around[1])


# Few kinds of outcomes: win, draw and loss, or the five sums of a pair of matches


def expected_score(elo: float) -> float:
    """Return the score from 0 to 1 that is expected of the stronger of two, on the logistic scale of chess ratings."""
    return 1 / (1 + 10 ** (-elo / 400))


def outcome_log_ratio(counts: Sequence[int], elos: tuple[float, float]) -> float:
    """Return the log ratio of the second Elo difference over the first, for outcomes that are worth 0 to 1 in equal steps.

    `counts` has three kinds for matches (loss, draw, win), or five for pairs of matches.
    """
    seen = [max(float(count), UNSEEN_COUNT) for count in counts]
    total = add_up(seen)
    shares = [count / total for count in seen]
    values = [step / (len(counts) - 1) for step in range(len(counts))]
    first, second = (_likeliest_tilts(shares, values, expected_score(elo)) for elo in elos)
    return total * add_up(
        share * math.log(low / high) for share, low, high in zip(shares, first, second, strict=True)
    )


def _likeliest_tilts(shares: Sequence[float], values: Sequence[float], mean: float) -> list[float]:
    """Return the tilts 1 + t (value - mean). The likeliest shares with this mean are the observed ones, divided by them."""

    def pull(tilt: float) -> float:
        return add_up(
            share * (value - mean) / (1 + tilt * (value - mean))
            for share, value in zip(shares, values, strict=True)
        )

    tilt = _find_root(pull, -1 / (values[-1] - mean), -1 / (values[0] - mean))
    return [1 + tilt * (value - mean) for value in values]


def _find_root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function is 0, between two ends at which it is undefined. Found by bisection."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
