"""Tests whether the referee charged bots more time than they report: compares its clock with the bots' own reports."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any

from seatwise_server.competition.numeric.significance import SIGNIFICANCE_LEVEL, holm_correction
from seatwise_server.competition.numeric.student_t import half_width_errors, student_cdf

LEAST_TIMED_MATCHES = 8
"""The fewest matches with reported times for which a bot is tested."""


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """One answer of a bot. The charge comes from the record. The report is the bot's own, and no other data confirm it."""

    bot: str
    match: str
    charged_ms: float
    reported_ms: float

    @property
    def over_ms(self) -> float:
        """The charge minus the report, in milliseconds."""
        return self.charged_ms - self.reported_ms


@dataclass(frozen=True, slots=True)
class ClockBias:
    """How much more one bot was charged than it reports, in milliseconds an answer."""

    bot: str
    answers: int
    mean_ms: float
    """The mean of the means of its matches."""
    low_ms: float
    """The lower end of the 95 % interval of the mean. Matches count as independent, and the answers of one match do not."""
    high_ms: float
    """The upper end of that interval."""
    worst: TimedAnswer
    """The answer for which the charge exceeds the report most."""
    p_value: float
    """How often chance alone puts its mean so far above the means of all other bots."""
    corrected_p_value: float
    """How often chance does so for any bot of the season."""

    @property
    def is_remarkable(self) -> bool:
        """Whether the corrected p-value is at most `SIGNIFICANCE_LEVEL`."""
        return self.corrected_p_value <= SIGNIFICANCE_LEVEL


TimeReports = Mapping[tuple[str, str, int], float]
"""By bot, match and prompt: the milliseconds that the bot reports for its answer."""


def match_reports(record: Mapping[str, Any], reports: TimeReports) -> Iterator[TimedAnswer]:
    """Yield the answers of a match that have both a charge in the record and a report.

    Only turns count. In a race a bot answers in many steps, and the charge is that of the last one.
    """
    match, bots = record["match"], [seat["bot"] for seat in record["seats"]]
    for entry in record["entries"]:
        if entry["kind"] == "move":
            bot = bots[entry["seat"]]
            if (took := reports.get((bot, match, entry["prompt"]))) is not None:
                yield TimedAnswer(bot, match, entry["charged_ms"], took)


def find_clock_bias(answers: Iterable[TimedAnswer]) -> tuple[ClockBias, ...]:
    """Test every bot that has enough matches, and return the most surprising first."""
    by_bot: dict[str, list[TimedAnswer]] = defaultdict(list)
    for answer in answers:
        by_bot[answer.bot].append(answer)
    of_matches = {bot: _match_means(its) for bot, its in sorted(by_bot.items())}
    known = {bot: means for bot, means in of_matches.items() if len(means) >= LEAST_TIMED_MATCHES}
    p = [
        _welch_p_value(means, [of for other, of in known.items() if other != bot])
        for bot, means in known.items()
    ]
    found = [
        _build_clock_bias(bot, by_bot[bot], means, own, corrected)
        for (bot, means), own, corrected in zip(known.items(), p, holm_correction(p), strict=True)
    ]
    return tuple(sorted(found, key=lambda of: (of.p_value, of.bot)))


def _match_means(answers: Iterable[TimedAnswer]) -> list[float]:
    by_match: dict[str, list[float]] = defaultdict(list)
    for answer in answers:
        by_match[answer.match].append(answer.over_ms)
    return [fmean(overs) for overs in by_match.values()]


def _welch_p_value(own: Sequence[float], others: Sequence[Sequence[float]]) -> float:
    """Test a bot's match means against the means of the other bots, by Welch's test. The spread among those bots counts too.

    Source: B. L. Welch, "The generalization of 'Student's' problem when several different population variances are involved"
    (1947).
    """
    if not others:
        return 1.0
    middles = [fmean(of) for of in others]
    among = variance(middles) if len(middles) > 1 else variance(others[0]) / len(others[0])
    one, other = variance(own) / len(own), among * (1 + 1 / len(middles))
    if one + other == 0:
        return 1.0
    freedom = (one + other) ** 2 / (one**2 / (len(own) - 1) + other**2 / max(1, len(middles) - 1))
    return 1 - student_cdf((fmean(own) - fmean(middles)) / math.sqrt(one + other), freedom)


def _build_clock_bias(
    bot: str, answers: Sequence[TimedAnswer], means: Sequence[float], p: float, corrected: float
) -> ClockBias:
    mean = fmean(means)
    half = half_width_errors(len(means) - 1) * math.sqrt(variance(means) / len(means))
    worst = max(answers, key=lambda answer: answer.over_ms)
    return ClockBias(bot, len(answers), mean, mean - half, mean + half, worst, p, corrected)
