"""Decides when to stop an A-against-B test, so that its errors are as rare as promised however the units are distributed.

Each hypothesis is refuted by an asymptotic e-process of its own (`seatwise.anytime_mean`). It knows only the units that it has seen. So
nothing is decided before `LEAST_UNITS`, because a large loss in one unit of twenty may not show before; nor while nearly all
units are equal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from seatwise.anytime_mean import LEAST_OTHER_NUMBERS, AnytimeMean

LEAST_UNITS: Final = 100
"""The fewest units before a verdict. In 99 of 100 tests they show what happens in one unit of twenty."""
LARGEST_RATIO: Final = 1000.0
"""Replaces an infinite log ratio. It is beyond all bounds, and JSON can hold it."""
MOST_LEAST_POINTS: Final = 1000.0
"""A test asks for a smaller difference than this. No game has as many points, and the squares of very large ones overflow."""


class TrialVerdict(StrEnum):
    """The verdict of a test: the accepted hypothesis, or none yet."""

    OPEN = "open"
    H0 = "H0"
    H1 = "H1"


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """The logs of the evidence after a unit."""

    for_h1: float
    """That A makes more points than B. H1 is accepted at log(1 / alpha)."""
    for_h0: float
    """That A does not make `least_points` more. H0 is accepted at log(1 / beta)."""


@dataclass(frozen=True, slots=True)
class AnytimeTest:
    """A test of mean points that may be looked at after every unit.

    H1: A makes more points than B. H0: A does not make `least_points` more. If both are shown by the same unit, the stronger
    evidence counts.
    """

    least_points: float = 2.0
    alpha: float = 0.05
    """How often H1 is accepted if both are equally strong."""
    beta: float = 0.05
    """How often H0 is accepted if A makes `least_points` more."""
    least_units: int = LEAST_UNITS
    """The fewest units before a verdict, if they are more than `LEAST_UNITS`."""

    def __post_init__(self) -> None:
        if not 0 < self.least_points < MOST_LEAST_POINTS:
            why = f"least_points: must be between 0 and {MOST_LEAST_POINTS:g}, not {self.least_points}"
            raise ValueError(why)
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0 < value < 0.5:
                raise ValueError(f"{name}: must be between 0 and 0.5, not {value}")

    def first_verdict(self, differences: Iterable[float]) -> TrialVerdict:
        """Return the first verdict that the differences give, unit by unit."""
        return self.run_test(differences)[1]

    def run_test(self, differences: Iterable[float]) -> tuple[tuple[float, ...], TrialVerdict]:
        """Return the log of the likelihood ratio after each unit, up to the verdict, and the verdict. The ratio decides nothing."""
        ratios: list[float] = []
        total = squares = 0.0
        found, counts = AnytimeMean(), Counter[float]()
        for difference in differences:
            total, squares = total + difference, squares + difference * difference
            found.add_number(difference)
            counts[difference] += 1
            ratios.append(normal_log_ratio(found.count, total, squares, (0.0, self.least_points)))
            if self._has_seen_enough(counts, found.count):
                verdict = self._decide(found)
                if verdict is not TrialVerdict.OPEN:
                    return tuple(ratios), verdict
        return tuple(ratios), TrialVerdict.OPEN

    def has_too_few(self, differences: Iterable[float]) -> bool:
        """Return whether there are too few different deals to decide, however clear the evidence seems."""
        counts = Counter(differences)
        return not self._has_seen_enough(counts, counts.total())

    def _has_seen_enough(self, counts: Counter[float], units: int) -> bool:
        if units < max(self.least_units, LEAST_UNITS):
            return False
        # the values of most tests are many, and then no value needs to be found
        return len(counts) > LEAST_OTHER_NUMBERS or units - max(counts.values()) >= LEAST_OTHER_NUMBERS

    def trace_evidence(self, differences: Iterable[float]) -> tuple[PairEvidence, ...]:
        """Return the evidence after each of the units."""
        found, course = AnytimeMean(), []
        for difference in differences:
            found.add_number(difference)
            course.append(self._weigh(found))
        return tuple(course)

    def _weigh(self, found: AnytimeMean) -> PairEvidence:
        return PairEvidence(found.log_evidence(0.0, 1), found.log_evidence(self.least_points, -1))

    def _decide(self, found: AnytimeMean) -> TrialVerdict:
        evidence = self._weigh(found)
        for_h1 = evidence.for_h1 + math.log(self.alpha)
        for_h0 = evidence.for_h0 + math.log(self.beta)
        if max(for_h1, for_h0) < 0:
            return TrialVerdict.OPEN
        return TrialVerdict.H1 if for_h1 >= for_h0 else TrialVerdict.H0


def summarize_differences(differences: Iterable[float]) -> AnytimeMean:
    """Return the mean of the differences, with an interval that holds at every look."""
    found = AnytimeMean()
    for difference in differences:
        found.add_number(difference)
    return found


def normal_log_ratio(count: int, total: float, squares: float, means: tuple[float, float]) -> float:
    """Return the log of the likelihood of the second mean over that of the first.

    `total` and `squares` are the sums of the `count` values and of their squares. Each mean takes the variance that suits it
    best: the mean square around it.
    """
    around = [squares / count - 2 * mean * total / count + mean * mean for mean in means]
    if min(around) <= 0:  # all values equal one of the means, or nearly so
        return 0.0 if around[0] == around[1] else math.copysign(LARGEST_RATIO, around[0] - around[1])
    return count / 2 * math.log(around[0] / around[1])
