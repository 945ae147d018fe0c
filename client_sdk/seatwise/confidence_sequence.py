"""A sequence of intervals for the mean of bounded numbers. All of them hold together, however often one looks.

One bets against each possible mean. If the bet is fair, a fortune of 1 rarely grows to many times its size: the chance that it
ever reaches x is at most 1/x (Ville's inequality). So a mean against which a fortune has grown that far is excluded for good.

Source: I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting" (2024). Here a fixed mixture of
stakes is bet, half of the error on each side, so that both ends are found by bisection.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

STAKES: Final = tuple(0.9 * 2.0 ** -(step / 2) for step in range(22))
"""The stakes of the mixture, as parts of the largest stake that can never lose a whole fortune."""

BISECTIONS: Final = 40


@dataclass(slots=True)
class ConfidenceSequence:
    """The numbers so far, and the interval of their mean.

    The numbers need not be independent. Each must have the same mean, whatever the numbers before it were.
    """

    bound: float
    """All numbers are within -bound and +bound. Larger ones are cut to it, and the interval is that of the cut numbers."""

    error: float = 0.05
    """The chance that any of the intervals misses the mean, at most."""

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

    def excludes(self, mean: float) -> int:
        """Return 1 if the mean is above this one, -1 if it is below, and 0 if that is not decided."""
        needed = math.log(2 / self.error)
        if self._log_fortune(mean, 1) >= needed:
            return 1
        return -1 if self._log_fortune(mean, -1) >= needed else 0

    def interval(self) -> tuple[float, float]:
        """Return the lower and the upper end."""
        return self._end(1), self._end(-1)

    def _end(self, side: int) -> float:
        """Return the end of the interval on this side, by bisection: a fortune falls as the mean comes nearer."""
        needed = math.log(2 / self.error)
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
