"""Estimates how probable each final order is, by the bootstrap: the season is drawn many times from its own deals.

It draws deals, not matches. The matches on one deal belong together, and without that the orders would look more
certain than they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.addition import add_up
from seatwise_server.competition.statistics.luck_correction import (
    CorrectedPoints,
    SeatValues,
    deal_name,
    uncorrected_points,
)

MOST_DRAWS: Final = 2000
"""How often a season is drawn, if that does not take more than `MOST_ADDITIONS`."""
FEWEST_DRAWS: Final = 200
MOST_ADDITIONS: Final = 8_000_000
"""A season with many matches is drawn less often, so that no more numbers than this are added."""

DealSums = list[tuple[int, float, int]]
"""(bot, sum, matches) of all bots that played the deal."""


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


def bootstrap_orders(
    results: Sequence[LoggedResult], points: CorrectedPoints | None = None, seed: str = ""
) -> OrderProbabilities:
    """Return how probable each order by mean points is.

    `points` are corrected points; None takes those of the results. `seed` seeds the draws.
    """
    bots = sorted({bot for result in results for bot in result.bots})
    deals = _sum_by_deal(results, (points or uncorrected_points(results)).values, bots)
    order = _order_by_mean(deals, len(bots))
    draws = max(FEWEST_DRAWS, min(MOST_DRAWS, MOST_ADDITIONS // max(1, sum(map(len, deals)))))
    chance = Random(f"bootstrap/{seed}")
    drawn = Counter(
        tuple(_order_by_mean(chance.choices(deals, k=len(deals)), len(bots)))
        for _ in range(draws if deals else 0)
    )
    return OrderProbabilities(
        draws if deals else 0,
        tuple(bots[bot] for bot in order),
        {bots[bot]: _rank_probabilities(bot, drawn, len(bots)) for bot in order},
        tuple((tuple(bots[bot] for bot in each), count / draws) for each, count in drawn.most_common(10)),
    )


def _sum_by_deal(results: Sequence[LoggedResult], values: SeatValues, bots: Sequence[str]) -> list[DealSums]:
    number = {bot: at for at, bot in enumerate(bots)}
    sums: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result, own in zip(results, values, strict=True):
        for bot, value in zip(result.bots, own, strict=True):
            sums[deal_name(result)][number[bot]].append(value)
    return [[(bot, add_up(found), len(found)) for bot, found in deal.items()] for deal in sums.values()]


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
