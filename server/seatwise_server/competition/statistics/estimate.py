"""Estimates means and shares with intervals at the level `CONFIDENCE`, where several values come from the same deal."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from seatwise_server.competition.numeric.linalg import add_up
from seatwise_server.competition.numeric.student_t import (
    CONFIDENCE,
    half_width_errors,
    normal_quantile,
    student_cdf,
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, and the interval that contains the true value in 95 of 100 seasons."""

    value: float
    low: float
    high: float
    standard_error: float
    """Infinite if there are fewer than two clusters."""
    clusters: int
    """The number of deals behind the value. A deal counts once, however often it was played."""

    def __str__(self) -> str:
        if not math.isfinite(self.standard_error):
            return f"{self.value:.2f} (one deal: no interval)"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    @property
    def probability_positive(self) -> float:
        """The probability, from these data alone, that the true value is above 0."""
        if not math.isfinite(self.standard_error):
            return 0.5
        if self.standard_error == 0:
            return 0.5 + 0.5 * (self.value > 0) - 0.5 * (self.value < 0)
        return student_cdf(self.value / self.standard_error, self.clusters - 1)


def estimate_mean(values: Iterable[tuple[str, float]]) -> Estimate:
    """Estimate the mean of values that come as (deal, value), with cluster-robust standard errors.

    Deals vary independently, and single matches on one deal do not. So the error comes from each deal's contribution to the
    mean. Raises `ValueError` if there are no values.
    """
    found = list(values)
    if not found:
        raise ValueError("no values")
    mean = add_up(value for _, value in found) / len(found)
    adds: dict[str, float] = defaultdict(float)
    for deal, value in found:
        adds[deal] += (value - mean) / len(found)
    return build_estimate(mean, adds.values(), len(adds))


def build_estimate(value: float, adds: Iterable[float], clusters: int, factor: float = 1.0) -> Estimate:
    """Return a value with the interval that follows from each deal's random contribution to it.

    `factor` compensates for the part of the contributions that an earlier fit has removed.
    """
    if clusters < 2:
        return Estimate(value, -math.inf, math.inf, math.inf, clusters)
    square = add_up(each * each for each in adds)
    error = math.sqrt(square * factor * clusters / (clusters - 1))
    half = half_width_errors(clusters - 1) * error
    return Estimate(value, value - half, value + half, error, clusters)


def estimate_share(values: Iterable[tuple[str, float]]) -> Estimate:
    """Estimate the mean of shares that come as (deal, share), with Wilson's interval, which stays within 0 and 1.

    Matches on one deal depend on each other, and half a point for a tie varies less than a win or a loss. The standard error
    of the plain mean contains both. So Wilson's formula gets the number of independent matches that would have this error.
    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927).
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
