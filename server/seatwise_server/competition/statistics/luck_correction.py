"""Luck of the deal, taken off: what a published house bot scores at the same seat of the same deal, and what other tables did.

A correction subtracts from a match's points something that is known without looking at the match, and whose mean is taken off
again: so no correction can move the mean of all, and one whose coefficient was fixed before the season cannot be bent towards
anybody. A coefficient that is badly chosen costs precision, never truth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.standings.scoring import counted_points
from seatwise_server.competition.statistics.residual_variance import seat_residuals

PAR_COEFFICIENT: Final = 0.5
"""What of par is taken off, for points of UGO! and `greedy` as the par bot."""
DEAL_VARIANCE_SHARE: Final = 0.45
"""The part of the variance at a seat that is the deal's."""
DEAL_VARIANCE_SHARE_AFTER_PAR: Final = 0.3
"""The same of what par has left."""
# All three by `tests/bench/matches_needed.py --fit`, on deals that were used for nothing else.

ParLookup = Callable[[LoggedResult], Sequence[float] | None]
"""What the par bot scores at each seat of that match's deal; `None` where that is not known."""

SeatValues = list[tuple[float, ...]]
"""By match and seat."""


@dataclass(frozen=True, slots=True)
class CorrectedPoints:
    """The points of all matches, as they are or corrected."""

    values: SeatValues
    common_shifts: Mapping[str, float] = field(default_factory=dict)
    """By deal, what it adds to the means of all bots alike. A correction takes a mean off that was measured in the same season:
    so the deals' luck is gone from differences, but not from how high all stand, and intervals have to know that."""


def deal_name(result: LoggedResult) -> str:
    """Names what is independent of all other matches: a match whose deal nobody else played is a deal of its own."""
    return result.deal or result.match


def add_par(results: Iterable[LoggedResult], par_of: ParLookup) -> list[LoggedResult]:
    """The same results with their pars, as far as they are known."""
    return [replace(result, par=tuple(map(float, par_of(result) or ()))) for result in results]


def uncorrected_points(results: Sequence[LoggedResult]) -> CorrectedPoints:
    """Points as they count."""
    return CorrectedPoints([tuple(map(float, counted_points(result))) for result in results])


def correct_by_par(results: Sequence[LoggedResult], coefficient: float) -> CorrectedPoints:
    """Points less a fixed part of what par is above its mean at that seat. Matches without par stay as they are."""
    pars = [result.par or (0.0,) * len(result.bots) for result in results]
    above = _subtract_seat_means(pars, [bool(result.par) for result in results])
    values = [
        tuple(value - coefficient * luck for value, luck in zip(own, off, strict=True))
        for own, off in zip(uncorrected_points(results).values, above, strict=True)
    ]
    return CorrectedPoints(values, _shifts_by_deal(results, above, coefficient))


def correct_by_other_tables(
    results: Sequence[LoggedResult], points: CorrectedPoints, deal_share: float
) -> CorrectedPoints:
    """Where a deal travelled: values less a part of what others made at that seat of it.

    `deal_share` is the part of the variance at a seat that is the deal's, fixed beforehand. The part that is taken off follows
    from it and from the number of other tables: the mean of few is itself mostly chance. As nobody is among the others of its
    own match, differences between bots come out larger by what the weaker or stronger others are worth; that is undone.
    """
    tables = _tables_by_deal(results)
    above = _subtract_seat_means(points.values, [True] * len(results))
    sums: dict[tuple[str, int], float] = defaultdict(float)
    for result, off in zip(results, above, strict=True):
        for seat, value in enumerate(off):
            sums[result.deal, seat] += value
    field_size = len({bot for result in results for bot in result.bots})
    values, parts = [], []
    for result, own, off in zip(results, points.values, above, strict=True):
        others = tables.get(result.deal, 1) - 1
        part = deal_share * others / (1 + deal_share * (others - 1)) if others else 0.0
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
    """What the deals still add to all: the part of the level that was taken off comes back with the season's mean."""
    part = sum(parts) / max(len(parts), 1)
    kept = (1 - part) / (1 + part / max(field_size - 1, 1))
    whole = _shifts_by_deal(
        results, _subtract_seat_means(uncorrected_points(results).values, [True] * len(results)), 1.0
    )
    before = points.common_shifts or dict.fromkeys(whole, 0.0)
    return {deal: (1 - kept) * whole[deal] + kept * before[deal] for deal in whole}


def _subtract_seat_means(values: SeatValues, counts: Sequence[bool]) -> SeatValues:
    """Each value less the mean at its seat, 0 in matches that do not count."""
    means = _seat_means(
        (len(own), seat, value)
        for own, is_in in zip(values, counts, strict=True)
        for seat, value in enumerate(own)
        if is_in
    )
    return [
        tuple(value - means[len(own), seat] if is_in else 0.0 for seat, value in enumerate(own))
        for own, is_in in zip(values, counts, strict=True)
    ]


def _shifts_by_deal(
    results: Sequence[LoggedResult], above: SeatValues, coefficient: float
) -> dict[str, float]:
    """What each deal adds to the mean of all values by the mean that was taken off."""
    count = sum(map(len, above))
    level: dict[str, float] = defaultdict(float)
    for result, off in zip(results, above, strict=True):
        level[deal_name(result)] += coefficient * sum(off) / count
    return level


def _tables_by_deal(results: Iterable[LoggedResult]) -> dict[str, int]:
    """The number of tables by deal, of those that no bot has met twice."""
    met: dict[str, list[str]] = defaultdict(list)
    tables: dict[str, int] = defaultdict(int)
    for result in results:
        if result.deal:
            met[result.deal].extend(result.bots)
            tables[result.deal] += 1
    return {deal: count for deal, count in tables.items() if len(set(met[deal])) == len(met[deal])}


def remaining_variance(results: Sequence[LoggedResult], points: CorrectedPoints) -> float:
    """Which part of the chance in single matches a correction has left; 1 where there was none."""
    before, after = (
        _sum_squared_residuals(results, each.values) for each in (uncorrected_points(results), points)
    )
    return after / before if before else 1.0


def _sum_squared_residuals(results: Sequence[LoggedResult], values: SeatValues) -> float:
    """The sum of squares of what neither bots nor opponents nor seats explain."""
    left, _ = seat_residuals(results, _subtract_seat_means(values, [True] * len(results)))
    return sum(value * value for own in left for value in own)


def _seat_means(values: Iterable[tuple[int, int, float]]) -> dict[tuple[int, int], float]:
    sums: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for key, seat, value in values:
        sums[key, seat][0] += value
        sums[key, seat][1] += 1
    return {key: total / count for key, (total, count) in sums.items()}
