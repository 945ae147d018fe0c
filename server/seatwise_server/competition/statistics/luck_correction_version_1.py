"""Corrects points by other tables as seasons of version 1 of the statistics did, so that their pages keep their digits.

It subtracts others' points instead of their luck. That is fair only if every bot meets all others equally often at the same
seat of a deal, which no schedule promises.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.addition import add_up
from seatwise_server.competition.statistics.luck_correction import (
    CorrectedPoints,
    part_to_subtract,
    shifts_by_deal,
    subtract_seat_means,
    sums_by_seat,
    tables_by_deal,
    uncorrected_points,
)


def correct_by_other_tables_version_1(
    results: Sequence[LoggedResult], points: CorrectedPoints, deal_share: float
) -> CorrectedPoints:
    """Where a deal travelled, subtract a part of the points that others made at the same seat of it.

    `deal_share` is the share of the variance at a seat that the deal causes, fixed before the season. The part to
    subtract follows from it and the number of other tables, because the mean of few tables is itself mostly
    chance. No bot is among the others of its own match. So a strong bot is compared with weaker others, and
    differences between bots come out too large. The divisor `shrink` compensates for that.
    """
    tables = tables_by_deal(results)
    above = subtract_seat_means(points.values, [True] * len(results))
    sums = sums_by_seat(results, above)
    field_size = len({bot for result in results for bot in result.bots})
    values, parts = [], []
    for result, own, off in zip(results, points.values, above, strict=True):
        others = tables.get(result.deal, 1) - 1
        part = part_to_subtract(others, deal_share)
        shrink = 1 + part / max(field_size - 1, 1)
        parts.append(part)
        values.append(
            tuple(
                value - luck + (luck - part * (sums[result.deal, seat] - luck) / max(others, 1)) / shrink
                for seat, (value, luck) in enumerate(zip(own, off, strict=True))
            )
        )
    return CorrectedPoints(values, _shifts_after_correction(results, points, parts, field_size))


def _shifts_after_correction(
    results: Sequence[LoggedResult], points: CorrectedPoints, parts: Sequence[float], field_size: int
) -> dict[str, float]:
    """Return what each deal still contributes to all bots. The part that was subtracted comes back with the season's mean."""
    part = add_up(parts) / max(len(parts), 1)
    kept = (1 - part) / (1 + part / max(field_size - 1, 1))
    whole = shifts_by_deal(
        results, subtract_seat_means(uncorrected_points(results).values, [True] * len(results)), 1.0
    )
    before = points.common_shifts or dict.fromkeys(whole, 0.0)
    return {deal: (1 - kept) * whole[deal] + kept * before[deal] for deal in whole}
