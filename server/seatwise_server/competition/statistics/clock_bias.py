"""Whether what bots were charged is what they say they took: the referee's clock beside the bots' own reports."""

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


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """One answer of a bot. The charge is in the record; the report is the bot's own, and nobody else can vouch for it."""

    bot: str
    match: str
    charged_ms: float
    reported_ms: float

    @property
    def over_ms(self) -> float:
        return self.charged_ms - self.reported_ms


@dataclass(frozen=True, slots=True)
class ClockBias:
    """What one bot was charged beyond its own report, in milliseconds an answer."""

    bot: str
    answers: int
    mean_ms: float
    low_ms: float
    high_ms: float
    """The 95 % interval of the mean; matches are taken for independent, the answers of one are not."""
    worst: TimedAnswer
    """Where the two differ most."""
    p_value: float
    """How often chance alone sets it so far apart, to its harm, from what all others were charged beyond theirs."""
    corrected_p_value: float
    """The same for any bot of the season."""

    @property
    def is_remarkable(self) -> bool:
        return self.corrected_p_value <= SIGNIFICANCE_LEVEL


TimeReports = Mapping[tuple[str, str, int], float]
"""By bot, match and prompt what the bot says that it took, in milliseconds."""


def match_reports(record: Mapping[str, Any], reports: TimeReports) -> Iterator[TimedAnswer]:
    """The answers of a match that both tell of: the record what they were charged, the bots what they took.

    Only turns. In a race a bot answers in many steps, and the charge is that of the last.
    """
    match, bots = record["match"], [seat["bot"] for seat in record["seats"]]
    for entry in record["entries"]:
        if entry["kind"] == "move":
            bot = bots[entry["seat"]]
            if (took := reports.get((bot, match, entry["prompt"]))) is not None:
                yield TimedAnswer(bot, match, entry["charged_ms"], took)


def find_clock_bias(answers: Iterable[TimedAnswer]) -> tuple[ClockBias, ...]:
    """Of every bot with enough matches to say something, the most surprising first."""
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
    """Welch's test against the mean of the other bots' means; they differ among themselves, and that counts too."""
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
