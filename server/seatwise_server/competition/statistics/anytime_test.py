"""Decides when to stop an A-against-B test, so that its errors are as rare as promised however the units are distributed.

The likelihood ratio of `sprt` takes the differences for normal. With skewed ones it errs in 10 to 16 of 100 tests instead of 5.
Here each hypothesis is refuted by an asymptotic e-process of its own (`seatwise.anytime_mean`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from seatwise.anytime_mean import AnytimeMean
from seatwise_server.competition.statistics.sprt import PointsTest, SprtVerdict, normal_log_ratio


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """The logs of the evidence after a unit."""

    for_h1: float
    """That A makes more points than B. H1 is accepted at log(1 / alpha)."""
    for_h0: float
    """That A does not make `least_points` more. H0 is accepted at log(1 / beta)."""


@dataclass(frozen=True, slots=True)
class AnytimeTest(PointsTest):
    """A test of mean points that may be looked at after every unit.

    H1: A makes more points than B. H0: A does not make `least_points` more. If both are shown by the same unit, the stronger
    evidence counts.
    """

    def run_test(self, differences: Iterable[float]) -> tuple[tuple[float, ...], SprtVerdict]:
        """Return the log ratio of `sprt` after each unit, up to the verdict, and the verdict. The ratio decides nothing."""
        ratios: list[float] = []
        total = squares = 0.0
        found = AnytimeMean()
        for difference in differences:
            total, squares = total + difference, squares + difference * difference
            found.add_number(difference)
            ratios.append(normal_log_ratio(found.count, total, squares, (0.0, self.least_points)))
            verdict = self._decide(found)
            if verdict is not SprtVerdict.OPEN:
                return tuple(ratios), verdict
        return tuple(ratios), SprtVerdict.OPEN

    def trace_evidence(self, differences: Iterable[float]) -> tuple[PairEvidence, ...]:
        """Return the evidence after each of the units."""
        found, course = AnytimeMean(), []
        for difference in differences:
            found.add_number(difference)
            course.append(self._weigh(found))
        return tuple(course)

    def _weigh(self, found: AnytimeMean) -> PairEvidence:
        return PairEvidence(found.log_evidence(0.0, 1), found.log_evidence(self.least_points, -1))

    def _decide(self, found: AnytimeMean) -> SprtVerdict:
        if found.count < self.least_units:
            return SprtVerdict.OPEN
        evidence = self._weigh(found)
        for_h1 = evidence.for_h1 + math.log(self.alpha)
        for_h0 = evidence.for_h0 + math.log(self.beta)
        if max(for_h1, for_h0) < 0:
            return SprtVerdict.OPEN
        return SprtVerdict.H1 if for_h1 >= for_h0 else SprtVerdict.H0


def summarize_differences(differences: Iterable[float]) -> AnytimeMean:
    """Return the mean of the differences, with an interval that holds at every look."""
    found = AnytimeMean()
    for difference in differences:
        found.add_number(difference)
    return found
