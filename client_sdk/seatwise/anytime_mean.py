"""Intervals for a mean that hold at every look: of numbers of which no bound is known, and of bounded numbers.

`AnytimeMean` needs no bound, and at least 16 numbers that vary. `BoundedAnytimeMean` holds from the first number on, also where most
numbers are equal, and is wider. Both are confidence sequences: all intervals that are ever shown hold the mean together. `PlannedMean`
is looked at ten times only, on the way to a number that is fixed beforehand, and needs the fewest.

`AnytimeMean` is asymptotic: the boundary of Robbins's one-sided normal mixture, for numbers that are measured in
their own standard deviation. Two steps make it hold from 16 numbers on, for skewed and for heavy-tailed numbers too:

- The deviation is measured around the mean that is tested, not around the mean of the numbers. For symmetric numbers such
  self-normalised sums need no normal distribution at all.
- Hall's transformation takes the skewness out, where it speaks for the claim. It never adds evidence.

Sources: H. Robbins, "Statistical Methods Related to the Law of the Iterated Logarithm" (1970). S. R. Howard, A. Ramdas,
J. McAuliffe, J. Sekhon, "Time-uniform, Nonparametric, Nonasymptotic Confidence Sequences" (2021), for the mixture and its
published values. I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy, A. Ramdas, "Time-uniform Central Limit Theory and
Asymptotic Confidence Sequences" (2024). P. Hall, "On the Removal of Skewness by Transformation" (1992). V. H. de la Peña,
"A General Class of Exponential Inequalities for Martingales and Ratios" (1999), for self-normalised sums.

In `BoundedAnytimeMean` one bets against each possible mean. If the bet is fair, a fortune of 1 rarely grows to many times its size: the
chance that it ever reaches x is at most 1/x (Ville's inequality). So a mean against which a fortune has grown that far is excluded for
good. Source: I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting" (2024). Here a fixed mixture of
stakes is bet, half of the error on each side, so that both ends are found by bisection.

`PlannedMean` is a group-sequential plan. Sources: P. C. O'Brien, T. R. Fleming, "A Multiple Testing Procedure for Clinical Trials" (1979);
C. Jennison, B. W. Turnbull, "Group Sequential Methods" (2000), whose repeated confidence intervals it shows.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

LEAST_NUMBERS: Final = 16
"""The fewest numbers before anything is claimed: fewer say too little about their own deviation."""
MIXTURE_TIME: Final = 32.0
"""The variance of the mixture's normal law is 1 / `MIXTURE_TIME`, for numbers with a standard deviation of 1."""
_ROOT_STEPS: Final = 80
STAKES: Final = tuple(0.9 * 2.0 ** -(step / 2) for step in range(22))
"""The stakes of the mixture, as parts of the largest stake that can never lose a whole fortune."""
BISECTIONS: Final = 40
PLANNED_LOOKS: Final = 10
PLANNED_QUANTILE: Final = 2.087
"""O'Brien and Fleming's constant for ten looks and 5 % on both sides together (Jennison and Turnbull, table 2.3)."""
LEAST_OTHER_NUMBERS: Final = 8
"""The fewest numbers that differ from the most frequent one: a rare large loss looks like none until it has come several times."""


@dataclass(slots=True)
class AnytimeMean:
    """The mean of numbers so far, and an interval for the true mean that may be looked at after every number.

    The numbers must be independent of each other, in an order that their values have not decided. Where matches depend on each
    other, as on one deal or in one round, their mean is one number.

    >>> found = AnytimeMean()
    >>> for number in [3.0, 1.0, 2.0, 4.0] * 10:
    ...     found.add_number(number)
    >>> found.mean, found.find_side(0.0)
    (2.5, 1)
    """

    count: int = 0
    """How many numbers there are."""
    mean: float = 0.0
    """Their mean; 0 if there are none."""
    _squares: float = 0.0
    """The sum of the squared distances from the mean."""
    _cubes: float = 0.0
    """The sum of the cubed distances from the mean."""

    def add_number(self, number: float) -> None:
        """Add a number. The sums around the mean follow T. B. Terriberry's formulas (2007)."""
        before, self.count = self.count, self.count + 1
        off = number - self.mean
        part = off / self.count
        term = off * part * before
        self.mean += part
        self._cubes += term * part * (self.count - 2) - 3 * part * self._squares
        self._squares += term

    @property
    def deviation(self) -> float:
        """The standard deviation of the numbers, with their count as the divisor; 0 if there are none."""
        return math.sqrt(self._squares / self.count) if self.count else 0.0

    def log_evidence(self, mean: float, side: int = 1) -> float:
        """Return the log of the evidence that the true mean is above `mean`, or below it if `side` is -1.

        If that is false, the evidence reaches 1 / error at any time in at most this share of sequences, by Ville's inequality.
        It is 0 before `LEAST_NUMBERS` numbers.
        """
        if self.count < LEAST_NUMBERS:
            return 0.0
        return log_normal_mixture(self._self_normalized_sum(mean, side), self.count, MIXTURE_TIME)

    def find_side(self, mean: float, error: float = 0.05) -> int:
        """Return 1 if the true mean is above this one, -1 if it is below, and 0 if that is not decided.

        At all looks together, `error` is the probability of a wrong answer, half of it on each side.
        """
        needed = math.log(2 / error)
        return (self.log_evidence(mean, 1) >= needed) - (self.log_evidence(mean, -1) >= needed)

    def interval(self, error: float = 0.05) -> tuple[float, float]:
        """Return the means that are not excluded: all intervals that are ever shown hold the true mean together.

        The probability that one of them does not is `error`. An end is infinite while the numbers are too few.
        """
        return self.mean - self._reach(1, error / 2), self.mean + self._reach(-1, error / 2)

    def _self_normalized_sum(self, mean: float, side: int) -> float:
        """Return the sum of distances from `mean`, in deviations around it, with the skewness taken out."""
        off, deviation = side * (self.mean - mean), self.deviation
        if not deviation:
            return math.copysign(self.count, off) if off else 0.0
        ratio = off / deviation
        ratio = min(ratio, _remove_skewness(ratio, side * self._skewness(), self.count))
        return self.count * ratio / math.sqrt(1 + ratio * ratio)

    def _skewness(self) -> float:
        return self._cubes / self.count / self.deviation**3

    def _reach(self, side: int, error: float) -> float:
        """Return how far the interval reaches from the mean, at the end on which `side` is excluded."""
        if self.count < LEAST_NUMBERS:
            return math.inf
        bound = normal_mixture_bound(self.count, MIXTURE_TIME, error) / self.count
        if bound >= 1:
            return math.inf
        deviation = self.deviation
        if not deviation:
            return 0.0
        ratio = bound / math.sqrt(1 - bound * bound)
        return deviation * max(ratio, _restore_skewness(ratio, side * self._skewness(), self.count))


def _remove_skewness(ratio: float, skewness: float, count: int) -> float:
    """Return Hall's transformation of (mean / deviation). It rises with the ratio."""
    return ratio + skewness * ratio**2 / 3 + skewness * skewness * ratio**3 / 27 + skewness / (6 * count)


def _restore_skewness(ratio: float, skewness: float, count: int) -> float:
    """Return the ratio whose transformation by `_remove_skewness` is this one."""
    if abs(skewness) < 1e-9:
        return ratio
    cube = 1 + skewness * (ratio - skewness / (6 * count))
    return 3 / skewness * (math.copysign(abs(cube) ** (1 / 3), cube) - 1)


def log_normal_mixture(total: float, variance: float, mixture_time: float) -> float:
    """Return the log of Robbins's one-sided normal mixture, an e-process for sums of this variance whose mean is 0 or less.

    Its stakes follow the positive half of a normal law whose variance is 1 / `mixture_time`.
    """
    whole = variance + mixture_time
    score = total / math.sqrt(whole)
    return 0.5 * math.log(4 * mixture_time / whole) + score * score / 2 + _log_normal_cdf(score)


def normal_mixture_bound(variance: float, mixture_time: float, error: float) -> float:
    """Return the sum at which `log_normal_mixture` reaches log(1 / error). Found by bisection."""
    needed, low, high = math.log(1 / error), 0.0, math.sqrt(variance + mixture_time)
    while log_normal_mixture(high, variance, mixture_time) < needed:
        low, high = high, 2 * high
    for _ in range(_ROOT_STEPS):
        middle = (low + high) / 2
        if log_normal_mixture(middle, variance, mixture_time) < needed:
            low = middle
        else:
            high = middle
    return high


def anytime_quantile(information: float, error: float = 0.05) -> float:
    """Return how many standard errors an interval needs to each side, so that it holds at every look.

    It suits any estimate whose error is nearly normal at all looks, as that of a fit. `information` is the squared ratio of a
    standard error, which must be fixed beforehand, to the present one. It takes the place of count / `MIXTURE_TIME`.
    """
    return normal_mixture_bound(information, 1.0, error / 2) / math.sqrt(information)


def exceeds_anytime_quantile(errors: float, information: float, error: float = 0.05) -> bool:
    """Return whether so many standard errors are more than `anytime_quantile` of the same information, without its bisection."""
    return log_normal_mixture(errors * math.sqrt(information), information, 1.0) > math.log(2 / error)


def _log_normal_cdf(value: float) -> float:
    """Return the log of the normal distribution function, by its asymptotic series where the tail is too thin for `erfc`."""
    if value > -30:
        return math.log(0.5 * math.erfc(-value / math.sqrt(2)))
    return -value * value / 2 - math.log(-value * math.sqrt(2 * math.pi)) + math.log1p(-1 / (value * value))


@dataclass(slots=True)
class BoundedAnytimeMean:
    """The mean of bounded numbers so far, and an interval for it that may be looked at after every number.

    The numbers need not be independent. Each must have the same mean, whatever the numbers before it were.
    """

    bound: float
    """All numbers are within -bound and +bound. Larger ones are cut to it, and the interval is that of the cut numbers."""

    count: int = 0
    """How many numbers there are."""

    cut: int = 0
    """How many of them were cut."""

    _total: float = 0.0
    _counts: Counter[float] = field(default_factory=Counter)

    def add_number(self, number: float) -> None:
        """Add a number to the sequence."""
        kept = max(-self.bound, min(self.bound, number))
        self.cut += kept != number
        self.count += 1
        self._total += kept
        self._counts[kept] += 1

    @property
    def mean(self) -> float:
        """The mean of the numbers so far; 0 if there are none."""
        return self._total / self.count if self.count else 0.0

    def find_side(self, mean: float, error: float = 0.05) -> int:
        """Return 1 if the mean is above this one, -1 if it is below, and 0 if that is not decided.

        At all looks together, `error` is the probability of a wrong answer, half of it on each side.
        """
        needed = math.log(2 / error)
        if self._log_fortune(mean, 1) >= needed:
            return 1
        return -1 if self._log_fortune(mean, -1) >= needed else 0

    def interval(self, error: float = 0.05) -> tuple[float, float]:
        """Return the means that are not excluded. `error` is the chance that any of the intervals misses the mean, at most."""
        return self._find_end(1, error / 2), self._find_end(-1, error / 2)

    def _find_end(self, side: int, error: float) -> float:
        """Return the end of the interval on this side, by bisection: a fortune falls as the mean comes nearer."""
        needed = math.log(1 / error)
        outside, inside = -side * self.bound, side * self.bound
        if self._log_fortune(outside, side) < needed:
            return outside
        for _ in range(BISECTIONS):
            middle = (outside + inside) / 2
            if self._log_fortune(middle, side) >= needed:
                outside = middle
            else:
                inside = middle
        return outside

    def _log_fortune(self, mean: float, side: int) -> float:
        """Return the logarithm of the fortune of one that bets on numbers above this mean, or below it if `side` is -1."""
        scale = side / (2 * self.bound)
        gains = [(scale * (number - mean), count) for number, count in self._counts.items()]
        logs = [math.fsum(count * math.log1p(stake * gain) for gain, count in gains) for stake in STAKES]
        most = max(logs)
        return most + math.log(math.fsum(math.exp(each - most) for each in logs) / len(STAKES))


@dataclass(slots=True)
class PlannedMean(BoundedAnytimeMean):
    """The mean of at most `most` numbers, and an interval that holds at all of ten looks, each after a tenth of them.

    The tenths must be nearly equal, and `most` must be fixed beforehand. The error is 5 %, by the normal distribution of self-normalised
    sums and Hall's transformation. While nearly all numbers are equal, nothing is excluded.
    """

    most: int = PLANNED_LOOKS

    def interval(self, error: float = 0.05) -> tuple[float, float]:
        """Return the means that are not excluded at this look. Raises `ValueError` for another error than 5 %."""
        if error != 0.05:
            raise ValueError(f"error: {PLANNED_QUANTILE} is for 0.05, not {error}")
        look = self.count * PLANNED_LOOKS // self.most
        others = self.count - max(self._counts.values(), default=0)
        part = PLANNED_QUANTILE * math.sqrt(PLANNED_LOOKS / look / self.count) if look else 1.0
        if others < LEAST_OTHER_NUMBERS or part >= 1:
            return -self.bound, self.bound
        squares, cubes = (
            math.fsum(times * (number - self.mean) ** power for number, times in self._counts.items())
            for power in (2, 3)
        )
        deviation = math.sqrt(squares / self.count)
        skewness = cubes / self.count / deviation**3
        ratio = part / math.sqrt(1 - part * part)
        low, high = (
            deviation * max(ratio, _restore_skewness(ratio, side * skewness, self.count)) for side in (1, -1)
        )
        return max(-self.bound, self.mean - low), min(self.bound, self.mean + high)

    def find_side(self, mean: float, error: float = 0.05) -> int:
        """Return 1 if the mean is above this one, -1 if it is below, and 0 if this look does not decide it."""
        low, high = self.interval(error)
        return (low > mean) - (high < mean)
