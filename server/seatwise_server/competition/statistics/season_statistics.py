"""Estimates the entrants of a season: mean points, differences on the same deals, comparisons of pairs, and final orders.

Deals are independent of each other. So all matches on one deal count as one observation. These figures hold for one look, after the
last match. Of pairs of equal bots, one in five would be told apart at some time, if somebody looked after every ten matches. So while a
season runs, `follow_differences` has intervals that hold however often somebody looks.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from random import Random
from typing import Final

from seatwise.anytime_mean import AnytimeMean
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import add_up
from seatwise_server.competition.numeric.student_t import (
    CONFIDENCE,
    half_width_errors,
    normal_quantile,
    student_cdf,
)
from seatwise_server.competition.standings.scoring import counted_points
from seatwise_server.competition.statistics.luck_correction import (
    CorrectedPoints,
    SeatValues,
    deal_name,
    seat_residuals,
    uncorrected_points,
)

# Estimates means and shares with intervals at the level `CONFIDENCE`, where several values come from the same deal.


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, and the interval that contains the true value in 95 of 100 seasons."""

    value: float
    low: float
    high: float
    standard_error: float
    """Infinite if there are fewer than two clusters."""
    clusters: int
    """The number of deals behind the value. A deal counts once, however often it was played."""

    def __str__(self) -> str:
        if not math.isfinite(self.standard_error):
            return f"{self.value:.2f} (one deal: no interval)"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    @property
    def probability_positive(self) -> float:
        """The probability, from these data alone, that the true value is above 0."""
        if not math.isfinite(self.standard_error):
            return 0.5
        if self.standard_error == 0:
            return 0.5 + 0.5 * (self.value > 0) - 0.5 * (self.value < 0)
        return student_cdf(self.value / self.standard_error, self.clusters - 1)


def estimate_mean(values: Iterable[tuple[str, float]]) -> Estimate:
    """Estimate the mean of values that come as (deal, value), with cluster-robust standard errors.

    Deals vary independently, and single matches on one deal do not. So the error comes from each deal's contribution to the
    mean. Raises `ValueError` if there are no values.
    """
    found = list(values)
    if not found:
        raise ValueError("no values")
    mean = add_up(value for _, value in found) / len(found)
    adds: dict[str, float] = defaultdict(float)
    for deal, value in found:
        adds[deal] += (value - mean) / len(found)
    return build_estimate(mean, adds.values(), len(adds))


def build_estimate(value: float, adds: Iterable[float], clusters: int, factor: float = 1.0) -> Estimate:
    """Return a value with the interval that follows from each deal's random contribution to it.

    `factor` compensates for the part of the contributions that an earlier fit has removed.
    """
    if clusters < 2:
        return Estimate(value, -math.inf, math.inf, math.inf, clusters)
    square = add_up(each * each for each in adds)
    error = math.sqrt(square * factor * clusters / (clusters - 1))
    half = half_width_errors(clusters - 1) * error
    return Estimate(value, value - half, value + half, error, clusters)


def estimate_share(values: Iterable[tuple[str, float]]) -> Estimate:
    """Estimate the mean of shares that come as (deal, share), with Wilson's interval, which stays within 0 and 1.

    Matches on one deal depend on each other, and half a point for a tie varies less than a win or a loss. The standard error
    of the plain mean contains both. So Wilson's formula gets the number of independent matches that would have this error.
    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927).
    """
    plain = estimate_mean(values)
    worth: float = plain.clusters
    if 0 < plain.standard_error < math.inf:
        worth = plain.value * (1 - plain.value) / plain.standard_error**2
    z = normal_quantile((1 + CONFIDENCE) / 2)
    middle = (plain.value + z * z / (2 * worth)) / (1 + z * z / worth)
    spread = math.sqrt(plain.value * (1 - plain.value) / worth + (z / (2 * worth)) ** 2)
    half = z / (1 + z * z / worth) * spread
    return replace(plain, low=max(0.0, middle - half), high=min(1.0, middle + half))


MOST_DRAWS: Final = 2000
"""How often a season is drawn, if that does not take more than `MOST_ADDITIONS`."""
FEWEST_DRAWS: Final = 200
MOST_ADDITIONS: Final = 8_000_000
"""A season with many matches is drawn less often, so that no more numbers than this are added."""

DealSums = list[tuple[int, float, int]]
"""(bot, sum, matches) of all bots that played the deal."""

PointsInUnit = dict[str, list[float]]
"""The points of each bot in the matches of one unit."""


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
    shifts = points.common_shifts
    estimates: dict[str, Estimate] = {}
    for bot, values in found.items():
        by_deal = adds[bot]
        # in the order of the log: a set has another order in each process, and with it the sum other last digits
        deals = dict.fromkeys((*by_deal, *shifts))
        of_deals = (by_deal.get(deal, 0.0) / len(values) + shifts.get(deal, 0.0) for deal in deals)
        estimates[bot] = build_estimate(add_up(values) / len(values), of_deals, len(by_deal), factor)
    return estimates


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
    return {
        deal: {bot: add_up(each) / len(each) for bot, each in bots.items()}
        for deal, bots in _group_by_deal(results, values).items()
    }


def _group_by_deal(results: Sequence[LoggedResult], values: SeatValues) -> dict[str, dict[str, list[float]]]:
    """Return the values of each bot on each deal. Both come in the order of the log."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result, own in zip(results, values, strict=True):
        for bot, value in zip(result.bots, own, strict=True):
            found[deal_name(result)][bot].append(value)
    return found


def compare_pairs(results: Sequence[LoggedResult]) -> dict[tuple[str, str], PairStatistics]:
    """Return the statistics of each (bot, other) that have sat at a table together."""
    ahead: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
    for result in results:
        for (bot, rank), (other, its) in permutations(zip(result.bots, result.ranks, strict=True), 2):
            if bot != other:
                ahead[bot, other].append((deal_name(result), (rank < its) + (rank == its) / 2))
    differences = estimate_differences(results)
    return {
        pair: PairStatistics(len(shares), estimate_share(shares), differences[pair])
        for pair, shares in sorted(ahead.items())
    }


# --- While a season runs -----------------------------------------------------------------------------------------


def follow_differences(
    results: Mapping[str, LoggedResult], due: Collection[str], *, by_round: bool = False
) -> dict[tuple[str, str], AnytimeMean]:
    """Return by (bot, other) the mean points minus the other's, over the units that both have played.

    `results` come by the ids of the schedule, and `due` has the ids of matches that may yet be played. A unit is a deal, or with
    `by_round` a round, where pairings follow results. Only rounds before the first open one count, in their order: a
    match that ended early must not come before one that takes long.
    """
    found: dict[tuple[str, str], AnytimeMean] = defaultdict(AnytimeMean)
    for points in _list_units(results, due, by_round=by_round):
        means = {bot: add_up(own) / len(own) for bot, own in points.items()}
        for bot, other in permutations(means, 2):
            found[bot, other].add_number(means[bot] - means[other])
    return dict(found)


def _list_units(
    results: Mapping[str, LoggedResult], due: Collection[str], *, by_round: bool
) -> Iterator[PointsInUnit]:
    """Yield the points of each unit, in the order of the schedule."""
    first_open = min(map(order_of_match, due), default=())
    units: dict[str, PointsInUnit] = {}
    for match in sorted(results, key=order_of_match):
        round_number, *_ = order_of_match(match)
        if first_open and round_number >= first_open[0]:
            break
        result = results[match]
        unit = units.setdefault(str(round_number) if by_round else deal_name(result), defaultdict(list))
        for bot, points in zip(result.bots, counted_points(result), strict=True):
            unit[bot].append(points)
    yield from units.values()


def order_of_match(match: str) -> tuple[int, ...]:
    """Return the numbers in the id of a match, by which a schedule orders its matches: `r12-t3` is (12, 3)."""
    return tuple(map(int, re.findall(r"\d+", match)))


# --- Final orders, by a bootstrap --------------------------------------------------------------------------------
#
# It draws deals, not matches. The matches on one deal belong together, and without that the orders would look more certain than they are.


@dataclass(frozen=True, slots=True)
class OrderProbabilities:
    """The orders in which the drawn seasons ended."""

    draws: int
    """How often the season was drawn."""
    bots: tuple[str, ...]
    """The bots in the order of the season itself, by mean points."""
    rank_probabilities: dict[str, tuple[float, ...]]
    """By bot the probability of each rank, the first rank first."""
    likeliest_orders: tuple[tuple[tuple[str, ...], float], ...]
    """Whole orders with their probabilities, the likeliest first, at most ten."""


def bootstrap_orders(results: Sequence[LoggedResult], seed: str = "") -> OrderProbabilities:
    """Return how probable each order by mean points is. `seed` seeds the draws."""
    bots = sorted({bot for result in results for bot in result.bots})
    number = {bot: at for at, bot in enumerate(bots)}
    by_deal = _group_by_deal(results, uncorrected_points(results).values)
    deals = [[(number[bot], add_up(own), len(own)) for bot, own in deal.items()] for deal in by_deal.values()]
    order = _order_by_mean(deals, len(bots))
    most = MOST_ADDITIONS // max(1, sum(map(len, deals)))
    draws = max(FEWEST_DRAWS, min(MOST_DRAWS, most)) if deals else 0
    chance = Random(f"bootstrap/{seed}")
    drawn = Counter(
        tuple(_order_by_mean(chance.choices(deals, k=len(deals)), len(bots))) for _ in range(draws)
    )
    return OrderProbabilities(
        draws,
        tuple(bots[bot] for bot in order),
        {bots[bot]: _rank_probabilities(bot, drawn, len(bots)) for bot in order},
        tuple((tuple(bots[bot] for bot in each), count / draws) for each, count in drawn.most_common(10)),
    )


def _order_by_mean(deals: Sequence[DealSums], bots: int) -> list[int]:
    """Return the numbers of the bots, the best mean first. A bot that was not drawn is last."""
    sums, counts = [0.0] * bots, [0] * bots
    for deal in deals:
        for bot, total, count in deal:
            sums[bot] += total
            counts[bot] += count
    means = [total / count if count else float("-inf") for total, count in zip(sums, counts, strict=True)]
    return sorted(range(bots), key=lambda bot: -means[bot])


def _rank_probabilities(bot: int, drawn: Counter[tuple[int, ...]], bots: int) -> tuple[float, ...]:
    found = [0] * bots
    for order, count in drawn.items():
        found[order.index(bot)] += count
    return tuple(each / drawn.total() for each in found) if drawn else ()
