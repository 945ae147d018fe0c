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
from seatwise_server.competition.numeric.linalg import Matrix, Vector, invert_matrix, sandwich_product
from seatwise_server.competition.numeric.student_t import half_width_errors
from seatwise_server.competition.ratings.bradley_terry import (
    information_matrix,
    maximize_likelihood,
    prior_information,
    probability_ahead,
)
from seatwise_server.competition.ratings.comparisons import Comparisons, count_comparisons
from seatwise_server.competition.ratings.sandwich_covariance import gradient_covariance

ELO_SCALE = 400 / math.log(10)
"""Strengths are shown on Elo's scale: 100 more is to be ahead in 64 of 100 matches, 200 more in 76."""
PROVISIONAL_HALF_WIDTH = 100.0
"""A strength is provisional until it is known to this much, up and down."""


@dataclass(frozen=True, slots=True)
class StrengthInterval:
    """An estimate, and between what the truth lies in 95 of 100 seasons."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
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
class StrengthFit:
    """What a log says of the strengths of its bots."""

    strengths: tuple[Strength, ...]
    """The strongest first."""
    _numbers: dict[str, int] = field(repr=False)
    _values: Vector = field(repr=False)
    _covariance: Matrix = field(repr=False)
    _groups: tuple[int, ...] = field(repr=False)
    _half_width_errors: float = field(repr=False)
    """The half of an interval in standard errors."""

    def strength_difference(self, one: str, other: str) -> StrengthInterval:
        """By how much the one is stronger. Not a difference of two intervals: both rest on the same matches."""
        i, j = self._numbers[one], self._numbers[other]
        value = ELO_SCALE * (self._values[i] - self._values[j])
        if self._groups[i] != self._groups[j]:
            return StrengthInterval(value, -math.inf, math.inf)
        c = self._covariance
        half = ELO_SCALE * self._half_width_errors * math.sqrt(max(0.0, c[i][i] + c[j][j] - 2 * c[i][j]))
        return StrengthInterval(value, value - half, value + half)

    def interval_ahead(self, one: str, other: str) -> StrengthInterval:
        """The probability that the one comes out ahead of the other at a table where both sit; a tie is half."""
        of = self.strength_difference(one, other)
        return StrengthInterval(
            *(probability_ahead(value / ELO_SCALE) for value in (of.value, of.low, of.high))
        )

    def indistinct_bots(self, bot: str) -> tuple[str, ...]:
        """From whom it cannot be told apart, the strongest first: 0 is within the interval of the difference."""
        others = (strength.bot for strength in self.strengths if strength.bot != bot)
        return tuple(other for other in others if _holds_zero(self.strength_difference(bot, other)))


def fit_strengths(results: Iterable[LoggedResult]) -> StrengthFit:
    """From all results of a log, in whatever order; void matches are not among them."""
    return fit_comparisons(count_comparisons(results))


def fit_comparisons(seen: Comparisons) -> StrengthFit:
    """The same from what is left of the results when they are counted."""
    found = maximize_likelihood(seen)
    groups = _linked_groups(seen)
    spread = _strength_covariance(seen, found, groups)
    values = _center_by_group(found, groups)
    times = half_width_errors(max(2, seen.cluster_count - len(seen.bots)))
    strengths = _build_strengths(
        seen, values, [times * math.sqrt(max(0.0, spread[n][n])) for n in range(len(values))], groups
    )
    return StrengthFit(strengths, {bot: n for n, bot in enumerate(seen.bots)}, values, spread, groups, times)


def _strength_covariance(seen: Comparisons, found: Vector, groups: Sequence[int]) -> Matrix:
    """Of strengths above their mean. The prior is a piece of what is known, so it scatters with the rest."""
    meat = gradient_covariance(seen, found)
    for number, strength in enumerate(found):
        meat[number][number] += prior_information(strength)
    spread = sandwich_product(invert_matrix(information_matrix(seen, found)), meat)
    by_columns = [_center_by_group(row, groups) for row in spread]
    return [_center_by_group(column, groups) for column in map(list, zip(*by_columns, strict=True))]


def _build_strengths(
    seen: Comparisons, values: Vector, halves: Vector, groups: Sequence[int]
) -> tuple[Strength, ...]:
    largest = max(map(groups.count, groups), default=0)
    strengths = [
        Strength(
            bot=bot,
            value=ELO_SCALE * values[n],
            low=ELO_SCALE * (values[n] - halves[n]),
            high=ELO_SCALE * (values[n] + halves[n]),
            matches=seen.matches[n],
            provisional=ELO_SCALE * halves[n] > PROVISIONAL_HALF_WIDTH or groups.count(groups[n]) < largest,
        )
        for n, bot in enumerate(seen.bots)
    ]
    return tuple(sorted(strengths, key=lambda strength: (-strength.value, strength.bot)))


def _linked_groups(seen: Comparisons) -> tuple[int, ...]:
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


def _center_by_group(values: Sequence[float], groups: Sequence[int]) -> Vector:
    """Above the mean of their groups."""
    sums: dict[int, float] = defaultdict(float)
    sizes: dict[int, int] = defaultdict(int)
    for value, group in zip(values, groups, strict=True):
        sums[group] += value
        sizes[group] += 1
    return [value - sums[group] / sizes[group] for value, group in zip(values, groups, strict=True)]


def _holds_zero(interval: StrengthInterval) -> bool:
    return interval.low <= 0 <= interval.high
