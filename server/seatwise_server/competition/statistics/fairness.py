"""Reports the figures of a season that would be surprising if all bots were honest: of pairs (`pair_test`), seats and clocks.

It is no verdict. docs/statistics.md has the tests. That of seats is Friedman's: M. Friedman, "The Use of Ranks to Avoid the Assumption
of Normality" (1937), here with residuals in place of ranks.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add
from statistics import fmean, variance
from typing import Any

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import add_up
from seatwise_server.competition.numeric.student_t import (
    SIGNIFICANCE_LEVEL,
    chi_square_tail,
    half_width_errors,
    holm_correction,
    student_cdf,
)
from seatwise_server.competition.statistics.pair_test import (
    Favour,
    Sheet,
    find_favours,
    fit_points,
    list_meetings,
)

LEAST_TIMED_MATCHES = 8
"""The fewest matches with reported times for which a bot is tested."""


@dataclass(frozen=True, slots=True)
class FairnessReport:
    """Three lists, each with the most surprising figure first."""

    favours: tuple[Favour, ...]
    """By pair of bots: whether the one does better where the other sits. Pairs that met too rarely, or always, are left out."""
    seat_bias: tuple[SeatBias, ...]
    """One for each size of tables."""
    clock_bias: tuple[ClockBias, ...]
    """Only for bots that report their own times."""

    def hold_over(self, looks: int) -> FairnessReport:
        """Return the report of one of so many looks that chance makes each part name something in one of twenty of all of them."""
        favours = (
            replace(each, corrected_p_value=min(1.0, looks * each.corrected_p_value)) for each in self.favours
        )
        seats = (replace(each, p_value=min(1.0, looks * each.p_value)) for each in self.seat_bias)
        return replace(self, favours=tuple(favours), seat_bias=tuple(seats))

    def list_remarks(self) -> list[str]:
        """Return a sentence for each remarkable figure. Most honest seasons have none."""
        return [
            *(_describe_favour(found) for found in self.favours if found.is_remarkable),
            *(_describe_seat_bias(found) for found in self.seat_bias if found.is_remarkable),
            *(_describe_clock_bias(found) for found in self.clock_bias if found.is_remarkable),
        ]


def check_fairness(results: Iterable[LoggedResult], answers: Sequence[TimedAnswer] = ()) -> FairnessReport:
    """Return the report on a season, from its results and those answers for which the bots reported times."""
    meetings = list_meetings(results)
    seats = find_seat_bias(fit_points([each for each in meetings if each.is_completed]))
    return FairnessReport(find_favours(meetings), seats, find_clock_bias(answers))


def _describe_favour(found: Favour) -> str:
    return (
        f"{found.taker} gains {found.gain:+.2f} points a match ({found.low:+.2f} to {found.high:+.2f}) beyond its strength "
        f"where {found.giver} sits, in {found.matches} matches; most surprising {found.found_by}: chance gives this to some pair in "
        f"{_format_probability(found.corrected_p_value)} of seasons"
    )


def _describe_seat_bias(found: SeatBias) -> str:
    gains = ", ".join(f"{gain:+.2f}" for gain in found.gains)
    return (
        f"the {len(found.gains)} seats differ by {gains} points a match in {found.matches} matches; chance gives this in "
        f"{_format_probability(found.p_value)} of seasons"
    )


def _describe_clock_bias(found: ClockBias) -> str:
    return (
        f"{found.bot} is charged {found.mean_ms:.0f} ms an answer ({found.low_ms:.0f} to {found.high_ms:.0f}) more than it reports, "
        f"beyond the difference of the other bots, most in {found.worst.match}; chance gives this to some bot in {_format_probability(found.corrected_p_value)} of seasons"
    )


def _format_probability(p: float) -> str:
    return "less than 0.1 %" if p < 0.001 else f"{100 * p:.1f} %"


# --- Seats ---


@dataclass(frozen=True, slots=True)
class SeatBias:
    """The result for all tables of one size."""

    matches: int
    gains: tuple[float, ...]
    """By seat, how many points per match it is worth more than the mean seat."""
    p_value: float
    """How often seats that are all equal differ by as much or more."""

    @property
    def is_remarkable(self) -> bool:
        """Whether the p-value is at most `SIGNIFICANCE_LEVEL`."""
        return self.p_value <= SIGNIFICANCE_LEVEL


def find_seat_bias(played: Sequence[Sheet]) -> tuple[SeatBias, ...]:
    """Test each size of tables that were played, the smallest first."""
    by_size: dict[int, list[Sheet]] = defaultdict(list)
    for sheet in played:
        by_size[len(sheet.bots)].append(sheet)
    return tuple(_measure_size(size, sheets) for size, sheets in sorted(by_size.items()))


def _measure_size(size: int, sheets: Sequence[Sheet]) -> SeatBias:
    pieces = _sum_by_deal(size, sheets)
    sums = [add_up(column) for column in zip(*pieces, strict=True)]
    scatter = add_up(value * value for piece in pieces for value in piece) / (size - 1)
    value = add_up(total * total for total in sums) / scatter if scatter else 0.0
    return SeatBias(
        len(sheets), tuple(total / len(sheets) for total in sums), chi_square_tail(value, size - 1)
    )


def _sum_by_deal(size: int, sheets: Sequence[Sheet]) -> list[list[float]]:
    """Sum each deal's residuals by seat. A deal that favours a seat does so at all its tables, and that is one chance event."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * size)
    for sheet in sheets:
        sums[sheet.deal] = [*map(add, sums[sheet.deal], sheet.residuals)]
    return list(sums.values())


# --- Clocks ---


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
    high_ms: float
    """The upper end of the 95 % interval of the mean. Matches count as independent, and the answers of one match do not."""
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
