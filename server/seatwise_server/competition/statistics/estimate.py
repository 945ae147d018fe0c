"""A mean with its 95 % interval, where several values come from the same deal."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from seatwise_server.competition.numeric.student_t import (
    CONFIDENCE,
    half_width_errors,
    normal_quantile,
    student_cdf,
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, and between what the truth lies in 95 of 100 seasons."""

    value: float
    low: float
    high: float
    standard_error: float
    """The standard one."""
    clusters: int
    """Deals that say something about it, each counted once however often it was played."""

    def __str__(self) -> str:
        if not math.isfinite(self.standard_error):
            return f"{self.value:.2f} (one deal: no interval)"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    @property
    def probability_positive(self) -> float:
        """How probable it is, after these data and no others, that the truth is more than 0."""
        if not math.isfinite(self.standard_error):
            return 0.5
        if self.standard_error == 0:
            return 0.5 + 0.5 * (self.value > 0) - 0.5 * (self.value < 0)
        return student_cdf(self.value / self.standard_error, self.clusters - 1)


def estimate_mean(values: Iterable[tuple[str, float]]) -> Estimate:
    """Of values that come as (deal, value); `ValueError` where there is none.

    What varies is the deal: the sums of what each deal adds to the mean are independent, single matches on it are not.
    """
    found = list(values)
    if not found:
        raise ValueError("no values")
    mean = sum(value for _, value in found) / len(found)
    adds: dict[str, float] = defaultdict(float)
    for deal, value in found:
        adds[deal] += (value - mean) / len(found)
    return build_estimate(mean, adds.values(), len(adds))


def build_estimate(value: float, adds: Iterable[float], clusters: int, factor: float = 1.0) -> Estimate:
    """A mean and what each deal has added to it, which is chance; the factor makes up for what a fit took of that."""
    if clusters < 2:
        return Estimate(value, -math.inf, math.inf, math.inf, clusters)
    square = sum(each * each for each in adds)
    error = math.sqrt(square * factor * clusters / (clusters - 1))
    half = half_width_errors(clusters - 1) * error
    return Estimate(value, value - half, value + half, error, clusters)


def estimate_share(values: Iterable[tuple[str, float]]) -> Estimate:
    """The same for shares from 0 to 1: Wilson's interval, which does not leave them, for as many matches as the deals are worth.

    Matches on one deal are not independent, and half a point for a tie spreads less than won or lost: both are in the error
    of the plain mean, and say how many independent matches would have it.
    """
    plain = estimate_mean(values)
    worth = (
        plain.value * (1 - plain.value) / plain.standard_error**2
        if 0 < plain.standard_error < math.inf
        else plain.clusters
    )
    z = normal_quantile((1 + CONFIDENCE) / 2)
    middle = (plain.value + z * z / (2 * worth)) / (1 + z * z / worth)
    half = (
        z / (1 + z * z / worth) * math.sqrt(plain.value * (1 - plain.value) / worth + (z / (2 * worth)) ** 2)
    )
    return Estimate(
        plain.value, max(0.0, middle - half), min(1.0, middle + half), plain.standard_error, plain.clusters
    )
