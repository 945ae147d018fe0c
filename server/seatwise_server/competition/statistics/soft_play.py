"""Tests whether a bot does better at tables with a certain other bot than both strengths explain (three or four seats)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance

from seatwise_server.competition.numeric.significance import SIGNIFICANCE_LEVEL, holm_correction
from seatwise_server.competition.numeric.student_t import half_width_errors, student_cdf
from seatwise_server.competition.statistics.residuals import MatchResiduals

LEAST_SHARED_MATCHES = 8
"""The fewest matches with the other bot, and the fewest without it, for which a pair is tested."""


@dataclass(frozen=True, slots=True)
class SoftPlay:
    """How many more points one bot makes at tables with the other than elsewhere, corrected for the strengths of all."""

    bot: str
    at_tables_of: str
    matches: int
    """The number of matches with both."""
    gain: float
    """The gain in points per match."""
    low: float
    """The lower end of the 95 % interval of this gain alone."""
    high: float
    """The upper end of that interval."""
    p_value: float
    """How often chance gives this gain or a larger one to this pair."""
    corrected_p_value: float
    """How often chance gives such a gain to any pair of the season."""

    @property
    def is_remarkable(self) -> bool:
        """Whether the corrected p-value is at most `SIGNIFICANCE_LEVEL`."""
        return self.corrected_p_value <= SIGNIFICANCE_LEVEL


def find_soft_play(played: Sequence[MatchResiduals]) -> tuple[SoftPlay, ...]:
    """Test every ordered pair that has met often enough, and return the most surprising first.

    Styles that suit each other count too.
    """
    found = [gain for bot, sheets in _residuals_by_bot(played).items() for gain in _gains_of_bot(bot, sheets)]
    corrected = holm_correction([gain.p_value for gain in found])
    return tuple(
        sorted(
            (replace(gain, corrected_p_value=by) for gain, by in zip(found, corrected, strict=True)),
            key=lambda gain: (gain.p_value, gain.bot, gain.at_tables_of),
        )
    )


def _residuals_by_bot(played: Iterable[MatchResiduals]) -> dict[str, list[tuple[frozenset[str], float]]]:
    """Return each bot's (bots at the table, residual) by match.

    Tables of two are left out: there soft play hurts no third bot.
    """
    found: dict[str, list[tuple[frozenset[str], float]]] = defaultdict(list)
    for sheet in played:
        if len(sheet.bots) > 2:
            company = frozenset(sheet.bots)
            for bot, left in zip(sheet.bots, sheet.residuals, strict=True):
                found[bot].append((company, left))
    return dict(sorted(found.items()))


def _gains_of_bot(bot: str, sheets: Sequence[tuple[frozenset[str], float]]) -> Iterable[SoftPlay]:
    everything = [left for _, left in sheets]
    for other in sorted(frozenset[str]().union(*(company for company, _ in sheets)) - {bot}):
        beside = [left for company, left in sheets if other in company]
        if min(len(beside), len(everything) - len(beside)) >= LEAST_SHARED_MATCHES:
            yield _measure_gain(bot, other, beside, everything)


def _measure_gain(bot: str, other: str, beside: Sequence[float], everything: Sequence[float]) -> SoftPlay:
    """Compare the matches with the other bot to all matches.

    The standard error is that of a random choice of as many of them.
    """
    count, total = len(beside), len(everything)
    share = count / total
    gain = (fmean(beside) - fmean(everything)) / (1 - share)
    error = math.sqrt(variance(everything) / (count * (1 - share)))
    if not error:
        return SoftPlay(bot, other, count, gain, gain, gain, 1.0, 1.0)
    half = half_width_errors(total - 2) * error
    p = 1 - student_cdf(gain / error, total - 2)
    return SoftPlay(bot, other, count, gain, gain - half, gain + half, p, p)
