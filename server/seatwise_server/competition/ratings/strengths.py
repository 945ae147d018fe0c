"""How strong each bot is, from all matches at once and in no order: the intervals that are shown, and who cannot be told apart.

`openskill_ratings` orders a ladder and pairs it; it is quick, and it depends on the order of the matches. This does not. It takes seconds
for some hundred bots, so it has no place on an event loop. docs/statistics.md says how often its intervals hold.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import Matrix, Vector, inverse, sandwich
from seatwise_server.competition.numeric.student_t import quantile
from seatwise_server.competition.ratings.bradley_terry import ahead, information, likeliest, prior_information
from seatwise_server.competition.ratings.comparisons import Comparisons, compare
from seatwise_server.competition.ratings.sandwich_covariance import scatter

ELO = 400 / math.log(10)
"""Strengths are shown on Elo's scale: 100 more is to be ahead in 64 of 100 matches, 200 more in 76."""
CONFIDENCE = 0.95
NARROW = 100.0
"""A strength is provisional until it is known to this much, up and down."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, and between what the truth lies in 95 of 100 seasons."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Strength:
    """One version's, in points of Elo above the mean of all that it is linked to by matches."""

    bot: str
    value: float
    low: float
    high: float
    matches: int
    provisional: bool
    """Its interval is wide, or it has played only within a group that nothing links to the others."""


@dataclass(frozen=True)
class Refit:
    """What a log says of the strengths of its bots."""

    strengths: tuple[Strength, ...]
    """The strongest first."""
    _numbers: dict[str, int] = field(repr=False)
    _values: Vector = field(repr=False)
    _covariance: Matrix = field(repr=False)
    _groups: tuple[int, ...] = field(repr=False)
    _times: float = field(repr=False)
    """The half of an interval in standard errors."""

    def difference(self, one: str, other: str) -> Interval:
        """By how much the one is stronger. Not a difference of two intervals: both rest on the same matches."""
        i, j = self._numbers[one], self._numbers[other]
        value = ELO * (self._values[i] - self._values[j])
        if self._groups[i] != self._groups[j]:
            return Interval(value, -math.inf, math.inf)
        c = self._covariance
        half = ELO * self._times * math.sqrt(max(0.0, c[i][i] + c[j][j] - 2 * c[i][j]))
        return Interval(value, value - half, value + half)

    def ahead(self, one: str, other: str) -> Interval:
        """The probability that the one comes out ahead of the other at a table where both sit; a tie is half."""
        of = self.difference(one, other)
        return Interval(*(ahead(value / ELO) for value in (of.value, of.low, of.high)))

    def indistinct(self, bot: str) -> tuple[str, ...]:
        """From whom it cannot be told apart, the strongest first: 0 is within the interval of the difference."""
        others = (strength.bot for strength in self.strengths if strength.bot != bot)
        return tuple(other for other in others if _holds_zero(self.difference(bot, other)))


def refit(results: Iterable[LoggedResult]) -> Refit:
    """From all results of a log, in whatever order; void matches are not among them."""
    return refit_of(compare(results))


def refit_of(seen: Comparisons) -> Refit:
    """The same from what is left of the results when they are counted."""
    found = likeliest(seen)
    groups = _groups(seen)
    spread = _covariance(seen, found, groups)
    values = _centred(found, groups)
    times = quantile((1 + CONFIDENCE) / 2, max(2, seen.independent - len(seen.bots)))
    strengths = _strengths(
        seen, values, [times * math.sqrt(max(0.0, spread[n][n])) for n in range(len(values))], groups
    )
    return Refit(strengths, {bot: n for n, bot in enumerate(seen.bots)}, values, spread, groups, times)


def _covariance(seen: Comparisons, found: Vector, groups: Sequence[int]) -> Matrix:
    """Of strengths above their mean. The prior is a piece of what is known, so it scatters with the rest."""
    meat = scatter(seen, found)
    for number, strength in enumerate(found):
        meat[number][number] += prior_information(strength)
    spread = sandwich(inverse(information(seen, found)), meat)
    by_columns = [_centred(row, groups) for row in spread]
    return [_centred(column, groups) for column in map(list, zip(*by_columns, strict=True))]


def _strengths(
    seen: Comparisons, values: Vector, halves: Vector, groups: Sequence[int]
) -> tuple[Strength, ...]:
    largest = max(map(groups.count, groups), default=0)
    strengths = [
        Strength(
            bot=bot,
            value=ELO * values[n],
            low=ELO * (values[n] - halves[n]),
            high=ELO * (values[n] + halves[n]),
            matches=seen.matches[n],
            provisional=ELO * halves[n] > NARROW or groups.count(groups[n]) < largest,
        )
        for n, bot in enumerate(seen.bots)
    ]
    return tuple(sorted(strengths, key=lambda strength: (-strength.value, strength.bot)))


def _groups(seen: Comparisons) -> tuple[int, ...]:
    """For each bot the least number that it is linked to by matches."""
    least = list(range(len(seen.bots)))

    def root(number: int) -> int:
        while least[number] != number:
            least[number] = number = least[least[number]]
        return number

    for (one, other), _, _ in seen.pairs:
        low, high = sorted((root(one), root(other)))
        least[high] = low
    return tuple(map(root, range(len(least))))


def _centred(values: Sequence[float], groups: Sequence[int]) -> Vector:
    """Above the mean of their groups."""
    sums: dict[int, float] = defaultdict(float)
    sizes: dict[int, int] = defaultdict(int)
    for value, group in zip(values, groups, strict=True):
        sums[group] += value
        sizes[group] += 1
    return [value - sums[group] / sizes[group] for value, group in zip(values, groups, strict=True)]


def _holds_zero(interval: Interval) -> bool:
    return interval.low <= 0 <= interval.high
