"""Estimates each bot's strength from all matches, in any order, and which bots cannot be distinguished.

`openskill_ratings` orders a ladder and pairs its bots: it is fast, and it depends on the order of the matches.
This fit does not. For a hundred bots or more it takes seconds, so it must not run on an event loop.
docs/statistics.md states how often its intervals contain the true value.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from seatwise.anytime_mean import anytime_quantile, exceeds_anytime_quantile
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import Matrix, Vector
from seatwise_server.competition.numeric.student_t import CONFIDENCE, half_width_errors, normal_quantile
from seatwise_server.competition.ratings.comparisons import Comparisons, count_comparisons

ELO_SCALE = 400 / math.log(10)
"""Elo points for one unit of log-odds. A bot that is 100 points stronger is ahead in 64 of 100 matches; with 200 it is 76."""
FIRST_LOOK_ERROR = 80.0
"""The standard error of a difference, in Elo points, at which comparisons that hold at every look begin to be sharp."""
PROVISIONAL_HALF_WIDTH = 100.0
"""A strength is provisional while its interval extends further than this to each side, in Elo points."""
HALF_WEIGHT_COMPARISONS = 5.0
"""With so many comparisons won, and as many lost, a bot has half its weight in the reference of strengths."""


@dataclass(frozen=True, slots=True)
class StrengthInterval:
    """An estimate, and the interval that contains the true value in 95 of 100 seasons."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Strength:
    """The strength of one version, in Elo points above the mean of the bots that matches link it to (`reference_shares`)."""

    bot: str
    value: float
    low: float
    high: float
    matches: int
    provisional: bool
    """Whether its interval is wide, or no matches link its group to the largest one."""
    table_value: float
    """The value that orders a table: the strength, less what the half interval for one look has beyond `PROVISIONAL_HALF_WIDTH`.

    Of a group that no matches link to the largest one, it is the lower end of that interval.
    """


@dataclass(frozen=True)
class StrengthFit:
    """The result of a fit: the strengths of the bots of a log, and how precisely they are known."""

    strengths: tuple[Strength, ...]
    """The strongest first."""
    shares: dict[str, float]
    """By bot, its share in the reference of its group."""
    _numbers: dict[str, int] = field(repr=False)
    _values: Vector = field(repr=False)
    _covariance: Matrix = field(repr=False)
    _groups: tuple[int, ...] = field(repr=False)
    _half_width_errors: float = field(repr=False)
    """How many standard errors an interval reaches to each side."""

    def strength_difference(self, one: str, other: str) -> StrengthInterval:
        """Return by how many Elo points the first bot is stronger than the second.

        It is not the difference of two intervals, because both rest on the same matches. If no matches link the
        two bots, the interval is infinite.
        """
        i, j = self._numbers[one], self._numbers[other]
        value = ELO_SCALE * (self._values[i] - self._values[j])
        if self._groups[i] != self._groups[j]:
            return StrengthInterval(value, -math.inf, math.inf)
        c = self._covariance
        half = ELO_SCALE * self._half_width_errors * math.sqrt(max(0.0, c[i][i] + c[j][j] - 2 * c[i][j]))
        return StrengthInterval(value, value - half, value + half)

    def excludes_equality(self, one: str, other: str) -> bool:
        """Return whether the two bots differ in strength, by an interval that holds at every look.

        The usual interval of the difference holds for one look. Here its quantile is replaced by that of
        `anytime_quantile`: a standard error of `FIRST_LOOK_ERROR` is an information of 1.
        """
        found = self.strength_difference(one, other)
        if _holds_zero(found):  # the wider interval holds it, too
            return False
        error = found.half_width / self._half_width_errors
        if not error:
            return found.value != 0
        errors = abs(found.value) / error / self._wider
        return exceeds_anytime_quantile(errors, (FIRST_LOOK_ERROR / error) ** 2, 1 - CONFIDENCE)

    def widen_for_every_look(self) -> StrengthFit:
        """Return the same fit for a log that still grows: the interval of each strength holds at every look."""
        return replace(self, strengths=tuple(map(self._widen_strength, self.strengths)))

    def _widen_strength(self, strength: Strength) -> Strength:
        error = (strength.high - strength.low) / 2 / self._half_width_errors
        half = 0.0
        if error:
            half = self._wider * anytime_quantile((FIRST_LOOK_ERROR / error) ** 2, 1 - CONFIDENCE) * error
        return replace(
            strength,
            low=strength.value - half,
            high=strength.value + half,
            provisional=strength.provisional or half > PROVISIONAL_HALF_WIDTH,
        )

    @property
    def _wider(self) -> float:
        return self._half_width_errors / normal_quantile((1 + CONFIDENCE) / 2)

    def indistinct_bots(self, bot: str, *, at_every_look: bool = False) -> tuple[str, ...]:
        """Return the bots that are indistinct from this one, the strongest first. See `is_indistinct`."""
        others = (strength.bot for strength in self.strengths if strength.bot != bot)
        return tuple(other for other in others if self.is_indistinct(bot, other, at_every_look=at_every_look))

    def is_indistinct(self, one: str, other: str, *, at_every_look: bool = False) -> bool:
        """Return whether the interval of their difference contains 0: with `at_every_look` that of `excludes_equality`."""
        if at_every_look:
            return not self.excludes_equality(one, other)
        return _holds_zero(self.strength_difference(one, other))


def fit_strengths(results: Iterable[LoggedResult]) -> StrengthFit:
    """Fit the strengths to all results of a log, in any order. The log has no void matches."""
    # numpy takes longer to import than some fits, and a thread for each core; only what fits strengths needs it
    from seatwise_server.competition.ratings.sandwich_covariance import estimate_strengths

    seen = count_comparisons(results)
    groups = _linked_groups(seen)
    shares = reference_shares(seen, groups)
    values, spread = estimate_strengths(seen, groups, shares)
    times = half_width_errors(max(2, seen.cluster_count - len(seen.bots)))
    halves = [times * math.sqrt(max(0.0, spread[n][n])) for n in range(len(values))]
    strengths = _build_strengths(seen, values, halves, groups)
    numbers = {bot: n for n, bot in enumerate(seen.bots)}
    return StrengthFit(
        strengths, dict(zip(seen.bots, shares, strict=True)), numbers, values, spread, groups, times
    )


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
            provisional=ELO_SCALE * halves[n] > PROVISIONAL_HALF_WIDTH or is_apart,
            table_value=ELO_SCALE * (values[n] - halves[n])
            if is_apart
            else ELO_SCALE * values[n] - max(0.0, ELO_SCALE * halves[n] - PROVISIONAL_HALF_WIDTH),
        )
        for n, bot in enumerate(seen.bots)
        for is_apart in (groups.count(groups[n]) < largest,)
    ]
    return tuple(sorted(strengths, key=lambda strength: (-strength.value, strength.bot)))


def _linked_groups(seen: Comparisons) -> tuple[int, ...]:
    """Return by bot the least number of the bots that matches link it to."""
    least = list(range(len(seen.bots)))

    def root(number: int) -> int:
        while least[number] != number:
            least[number] = number = least[least[number]]
        return number

    for (one, other), _, _ in seen.pairs:
        low, high = sorted((root(one), root(other)))
        least[high] = low
    return tuple(map(root, range(len(least))))


def reference_shares(seen: Comparisons, groups: Sequence[int]) -> Vector:
    """Return by bot its share in the reference of its group: the weighted mean strength from which all of its strengths count.

    The weight is w / (w + `HALF_WEIGHT_COMPARISONS`), where w is the number of comparisons that the bot won or lost, whichever is
    smaller. So a bot that never wins does not move the strengths of the others. If fewer than two bots of a group have a weight, all
    shares are equal: a bot that is the whole reference would have the strength 0, without any doubt.
    """
    won, lost = [0.0] * len(seen.bots), [0.0] * len(seen.bots)
    for (one, other), met, ahead in seen.pairs:
        won[one] += ahead
        lost[one] += met - ahead
        won[other] += met - ahead
        lost[other] += ahead
    both = map(min, won, lost)
    weights = [least / (least + HALF_WEIGHT_COMPARISONS) for least in both]
    sums: dict[int, float] = defaultdict(float)
    for weight, group in zip(weights, groups, strict=True):
        sums[group] += weight
    weighed = Counter(group for weight, group in zip(weights, groups, strict=True) if weight)
    return [
        weight / sums[group] if weighed[group] > 1 else 1 / groups.count(group)
        for weight, group in zip(weights, groups, strict=True)
    ]


def _holds_zero(interval: StrengthInterval) -> bool:
    return interval.low <= 0 <= interval.high
