"""What in a season would surprise an honest observer. A report, not a verdict: it says where to look, and how sure it is.

Chance alone makes each of the three parts name something in no more than one of twenty seasons. What is named may have an honest
cause (two styles that suit each other), and what is not named may be foul all the same (bots that help each other seldom).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.statistics.clock_bias import ClockBias, TimedAnswer, find_clock_bias
from seatwise_server.competition.statistics.residuals import match_residuals
from seatwise_server.competition.statistics.seat_bias import SeatBias, find_seat_bias
from seatwise_server.competition.statistics.soft_play import SoftPlay, find_soft_play


@dataclass(frozen=True, slots=True)
class FairnessReport:
    """The most surprising comes first in each part."""

    soft_play: tuple[SoftPlay, ...]
    """Who does better at whose tables; pairs that met too seldom, or always, are not in it."""
    seat_bias: tuple[SeatBias, ...]
    """For each size of tables."""
    clock_bias: tuple[ClockBias, ...]
    """Only of bots that report their own times."""

    def list_remarks(self) -> list[str]:
        """What is remarkable, a sentence for each; none in most honest seasons."""
        return [
            *(_describe_soft_play(found) for found in self.soft_play if found.is_remarkable),
            *(_describe_seat_bias(found) for found in self.seat_bias if found.is_remarkable),
            *(_describe_clock_bias(found) for found in self.clock_bias if found.is_remarkable),
        ]


def check_fairness(results: Iterable[LoggedResult], answers: Sequence[TimedAnswer] = ()) -> FairnessReport:
    """Of a whole season, from its results and, where they are known, its bots' answers."""
    played = match_residuals(results)
    return FairnessReport(find_soft_play(played), find_seat_bias(played), find_clock_bias(answers))


def _describe_soft_play(found: SoftPlay) -> str:
    return (
        f"{found.bot} scores {found.gain:+.2f} points a match ({found.low:+.2f} to {found.high:+.2f}) more than its strength "
        f"explains where {found.at_tables_of} sits, in {found.matches} matches; chance gives this to some pair in "
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
        f"beyond what others are, most in {found.worst.match}; chance gives this to some bot in {_format_probability(found.corrected_p_value)} of seasons"
    )


def _format_probability(p: float) -> str:
    return "less than 0.1 %" if p < 0.001 else f"{100 * p:.1f} %"
