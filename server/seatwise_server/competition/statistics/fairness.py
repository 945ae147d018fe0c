"""What in a season would surprise an honest observer. A report, not a verdict: it says where to look, and how sure it is.

Chance alone makes each of the three parts name something in no more than one of twenty seasons. What is named may have an honest
cause (two styles that suit each other), and what is not named may be foul all the same (bots that help each other seldom).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.statistics.clock_bias import Timed, Timing, timing
from seatwise_server.competition.statistics.residuals import sheets
from seatwise_server.competition.statistics.seat_bias import SeatBias, seat_bias
from seatwise_server.competition.statistics.soft_play import Softness, softness


@dataclass(frozen=True, slots=True)
class Fairness:
    """The most surprising comes first in each part."""

    softness: tuple[Softness, ...]
    """Who does better at whose tables; pairs that met too seldom, or always, are not in it."""
    seats: tuple[SeatBias, ...]
    """For each size of tables."""
    timing: tuple[Timing, ...]
    """Only of bots that report their own times."""

    def remarks(self) -> list[str]:
        """What is remarkable, a sentence for each; none in most honest seasons."""
        return [
            *(_of_softness(found) for found in self.softness if found.is_remarkable),
            *(_of_seats(found) for found in self.seats if found.is_remarkable),
            *(_of_timing(found) for found in self.timing if found.is_remarkable),
        ]


def fairness(results: Iterable[LoggedResult], answers: Sequence[Timed] = ()) -> Fairness:
    """Of a whole season, from its results and, where they are known, its bots' answers."""
    played = sheets(results)
    return Fairness(softness(played), seat_bias(played), timing(answers))


def _of_softness(found: Softness) -> str:
    return (
        f"{found.bot} scores {found.gain:+.2f} points a match ({found.low:+.2f} to {found.high:+.2f}) more than its strength "
        f"explains where {found.at_tables_of} sits, in {found.matches} matches; chance gives this to some pair in "
        f"{_share(found.corrected)} of seasons"
    )


def _of_seats(found: SeatBias) -> str:
    gains = ", ".join(f"{gain:+.2f}" for gain in found.gains)
    return (
        f"the {len(found.gains)} seats differ by {gains} points a match in {found.matches} matches; chance gives this in "
        f"{_share(found.p)} of seasons"
    )


def _of_timing(found: Timing) -> str:
    return (
        f"{found.bot} is charged {found.mean:.0f} ms an answer ({found.low:.0f} to {found.high:.0f}) more than it reports, "
        f"beyond what others are, most in {found.worst.match}; chance gives this to some bot in {_share(found.corrected)} of seasons"
    )


def _share(p: float) -> str:
    return "less than 0.1 %" if p < 0.001 else f"{100 * p:.1f} %"
