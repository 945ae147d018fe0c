"""Reports the figures of a season that would be surprising if all bots were honest.

It is no verdict: it shows where to look, and with what certainty. Chance alone makes each of the three parts name
something in at most one of twenty seasons. A named figure may have an honest cause, such as two styles that suit
each other. And bots that help each other only rarely may not be named.
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
    """Three lists, each with the most surprising figure first."""

    soft_play: tuple[SoftPlay, ...]
    """By pair of bots: whether the first does better where the second sits.

    Pairs that met too rarely, or always, are left out.
    """
    seat_bias: tuple[SeatBias, ...]
    """One for each size of tables."""
    clock_bias: tuple[ClockBias, ...]
    """Only for bots that report their own times."""

    def list_remarks(self) -> list[str]:
        """Return a sentence for each remarkable figure. Most honest seasons have none."""
        return [
            *(_describe_soft_play(found) for found in self.soft_play if found.is_remarkable),
            *(_describe_seat_bias(found) for found in self.seat_bias if found.is_remarkable),
            *(_describe_clock_bias(found) for found in self.clock_bias if found.is_remarkable),
        ]


def check_fairness(results: Iterable[LoggedResult], answers: Sequence[TimedAnswer] = ()) -> FairnessReport:
    """Return the report on a season, from its results and those answers for which the bots reported times."""
    played = match_residuals(results)
    return FairnessReport(find_soft_play(played), find_seat_bias(played), find_clock_bias(answers))


def _describe_soft_play(found: SoftPlay) -> str:
    return (
        f"{found.bot} scores {found.gain:+.2f} points a match ({found.low:+.2f} to {found.high:+.2f}) beyond its strength "
        f"where {found.at_tables_of} sits, in {found.matches} matches; chance gives this to some pair in "
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
