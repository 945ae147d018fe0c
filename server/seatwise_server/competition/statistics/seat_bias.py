"""Tests whether one seat is worth more than another, by Friedman's test on the part that strengths do not explain.

Source: M. Friedman, "The Use of Ranks to Avoid the Assumption of Normality" (1937), here with residuals in place
of ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from seatwise_server.competition.numeric.addition import add_up
from seatwise_server.competition.numeric.significance import SIGNIFICANCE_LEVEL, chi_square_tail
from seatwise_server.competition.statistics.residuals import MatchResiduals


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


def find_seat_bias(played: Sequence[MatchResiduals]) -> tuple[SeatBias, ...]:
    """Test each size of tables that were played, the smallest first."""
    by_size: dict[int, list[MatchResiduals]] = defaultdict(list)
    for sheet in played:
        by_size[len(sheet.bots)].append(sheet)
    return tuple(_measure_size(size, sheets) for size, sheets in sorted(by_size.items()))


def _measure_size(size: int, sheets: Sequence[MatchResiduals]) -> SeatBias:
    pieces = _sum_by_deal(size, sheets)
    sums = [add_up(column) for column in zip(*pieces, strict=True)]
    scatter = add_up(value * value for piece in pieces for value in piece) / (size - 1)
    value = add_up(total * total for total in sums) / scatter if scatter else 0.0
    return SeatBias(
        len(sheets), tuple(total / len(sheets) for total in sums), chi_square_tail(value, size - 1)
    )


def _sum_by_deal(size: int, sheets: Sequence[MatchResiduals]) -> list[list[float]]:
    """Sum each deal's residuals by seat.

    A deal that favours a seat does so at all its tables, and that is one chance event.
    """
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * size)
    for sheet in sheets:
        sums[sheet.deal] = [
            total + left for total, left in zip(sums[sheet.deal], sheet.residuals, strict=True)
        ]
    return list(sums.values())
