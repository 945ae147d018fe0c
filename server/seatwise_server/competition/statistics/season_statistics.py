"""Estimates the entrants of a season: mean points, differences on the same deals, and comparisons of pairs.

Deals are independent of each other. So all matches on one deal count as one observation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.addition import add_up
from seatwise_server.competition.statistics.estimate import Estimate, build_estimate, estimate_share
from seatwise_server.competition.statistics.luck_correction import (
    CorrectedPoints,
    SeatValues,
    deal_name,
    uncorrected_points,
)
from seatwise_server.competition.statistics.residual_variance import seat_residuals


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """One bot against another."""

    matches: int
    """The number of matches at which both sat."""
    ahead: Estimate
    """The share of these in which the bot finished ahead of the other. A tie counts half."""
    difference: Estimate
    """Its points minus the other's, on all deals that both have played, at any tables."""

    @property
    def probability_better(self) -> float:
        """The probability that it makes more points in the long run."""
        return self.difference.probability_positive


def estimate_entrant_means(
    results: Sequence[LoggedResult], points: CorrectedPoints | None = None
) -> dict[str, Estimate]:
    """Estimate each bot's mean points a match, over the schedule as it is: opponents and seats are fixed, not chance."""
    points = points or uncorrected_points(results)
    left, factor = seat_residuals(results, points.values)
    found: dict[str, list[float]] = defaultdict(list)
    adds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for result, own, off in zip(results, points.values, left, strict=True):
        for bot, value, chance in zip(result.bots, own, off, strict=True):
            found[bot].append(value)
            adds[bot][deal_name(result)] += chance
    return {
        bot: build_estimate(
            add_up(values) / len(values),
            _deal_contributions(adds[bot], len(values), points),
            len(adds[bot]),
            factor,
        )
        for bot, values in found.items()
    }


def _deal_contributions(own: Mapping[str, float], matches: int, points: CorrectedPoints) -> Iterable[float]:
    """Yield the contribution of each deal to a bot's mean, by the bot's own matches and by the shift of all bots.

    Deals come in the order of the log. A set of them would have another order in each process, and so would the
    last digits of the sum.
    """
    return (
        own.get(deal, 0.0) / matches + points.common_shifts.get(deal, 0.0)
        for deal in dict.fromkeys((*own, *points.common_shifts))
    )


def estimate_differences(
    results: Sequence[LoggedResult], points: CorrectedPoints | None = None
) -> dict[tuple[str, str], Estimate]:
    """Estimate by (bot, other) the mean points minus the other's, deal by deal, where both have played the deal.

    The part that a deal gives to both cancels out. With a rotation that is everything. Where a deal travelled and the two
    sat at different seats of it, the rest is left to corrections.
    """
    points = points or uncorrected_points(results)
    left, factor = seat_residuals(results, points.values)
    values, chances = _means_by_deal(results, points.values), _means_by_deal(results, left)
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for deal, means in values.items():
        off = chances[deal]
        for bot, other in permutations(means, 2):
            found[bot, other].append((means[bot] - means[other], off[bot] - off[other]))
    return {pair: _estimate_difference(pieces, factor) for pair, pieces in found.items()}


def _estimate_difference(pieces: Sequence[tuple[float, float]], factor: float) -> Estimate:
    """Estimate a difference from (difference, chance in it) by deal."""
    count = len(pieces)
    mean, off = (add_up(each) / count for each in zip(*pieces, strict=True))
    return build_estimate(mean, ((chance - off) / count for _, chance in pieces), count, factor)


def _means_by_deal(results: Sequence[LoggedResult], values: SeatValues) -> dict[str, dict[str, float]]:
    """Return each bot's mean on each deal."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result, own in zip(results, values, strict=True):
        for bot, value in zip(result.bots, own, strict=True):
            found[deal_name(result)][bot].append(value)
    return {
        deal: {bot: add_up(each) / len(each) for bot, each in bots.items()} for deal, bots in found.items()
    }


def compare_pairs(
    results: Sequence[LoggedResult], points: CorrectedPoints | None = None
) -> dict[tuple[str, str], PairStatistics]:
    """Return the statistics of each (bot, other) that have sat at a table together."""
    ahead: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
    for result in results:
        for (bot, rank), (other, its) in permutations(zip(result.bots, result.ranks, strict=True), 2):
            if bot != other:
                ahead[bot, other].append((deal_name(result), (rank < its) + (rank == its) / 2))
    differences = estimate_differences(results, points)
    return {
        pair: PairStatistics(len(shares), estimate_share(shares), differences[pair])
        for pair, shares in sorted(ahead.items())
    }
