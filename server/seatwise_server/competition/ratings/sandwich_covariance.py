"""Estimates how much the sums behind a fit would vary if the same season were played again.

The comparisons of one table depend on each other, and so do all tables of one duplicate deal. So the curvature of
the likelihood, which treats them as independent, does not give the spread of its maximum. The covariance of whole
clusters is needed too: the "sandwich" estimator of Huber (1967) and White (1980).

That covariance comes from the clusters themselves. If the matches of a bot give little information, because they
are few or almost certain, the model of Plackett and Luce replaces it. Otherwise a bot whose results have hardly
varied yet would seem never to vary.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations

from seatwise_server.competition.numeric.linalg import Matrix, Vector, zero_matrix
from seatwise_server.competition.ratings.bradley_terry import information_by_bot, probability_ahead
from seatwise_server.competition.ratings.comparisons import Cluster, Comparisons, pair_outcomes

HALF_TRUSTED_INFORMATION = 5.0
"""The amount of information about a bot at which its own clusters and the model have half the weight each."""
LEAST_LOG_ODDS = -300.0
"""The least log-odds against the strongest bot of a table. The square of such odds is still a positive float."""

TableMembers = tuple[int, ...]
"""The numbers of the bots at a table."""


def gradient_covariance(seen: Comparisons, strengths: Vector) -> Matrix:
    """Return the covariance of the sums of won comparisons, one for each bot: the meat of the sandwich."""
    trust = [known / (known + HALF_TRUSTED_INFORMATION) for known in information_by_bot(seen, strengths)]
    total = zero_matrix(len(strengths))
    modelled: dict[TableMembers, float] = defaultdict(float)
    for piece, count in seen.clusters:
        sums = _cluster_residuals(piece, strengths)
        seen_part = min(trust[bot] for bot in sums)
        _add_outer_product(total, sums, count * seen_part)
        for match in piece:
            modelled[tuple(bot for bot, _ in match)] += count * (1 - seen_part)
    for company, weight in sorted(modelled.items()):
        _add_model_covariance(total, company, strengths, weight)
    return total


def _cluster_residuals(piece: Cluster, strengths: Vector) -> dict[int, float]:
    """Return by how much each bot won more than expected."""
    sums = {bot: 0.0 for match in piece for bot, _ in match}
    for match in piece:
        for one, other, won in pair_outcomes(match):
            more = won - probability_ahead(strengths[one] - strengths[other])
            sums[one] += more
            sums[other] -= more
    return sums


def _add_outer_product(total: Matrix, sums: dict[int, float], weight: float) -> None:
    for one, its in sums.items():
        row, by = total[one], weight * its
        for other, others in sums.items():
            row[other] += by * others


def _add_model_covariance(total: Matrix, company: TableMembers, strengths: Vector, weight: float) -> None:
    """Add what Plackett and Luce's model says of one table. Two comparisons depend on each other only if they share a bot."""
    odds = _relative_odds(company, strengths)
    for one, other in combinations(company, 2):
        both = odds[one] + odds[other]
        _add_pair_variance(total, one, other, weight * odds[one] * odds[other] / (both * both))
    for three in combinations(company, 3):
        of_all = sum([odds[bot] for bot in three])
        for first, left, right in (three, three[1:] + three[:1], three[2:] + three[:2]):
            own = odds[first]
            apart = own * own / ((own + odds[left]) * (own + odds[right]))
            _add_pair_covariance(total, first, left, right, weight * (own / of_all - apart))


def _relative_odds(company: TableMembers, strengths: Vector) -> dict[int, float]:
    """Return each bot's odds against the strongest of the table, at least exp(`LEAST_LOG_ODDS`)."""
    best = max([strengths[bot] for bot in company])
    return {bot: math.exp(max(strengths[bot] - best, LEAST_LOG_ODDS)) for bot in company}


def _add_pair_variance(total: Matrix, one: int, other: int, variance: float) -> None:
    total[one][one] += variance
    total[other][other] += variance
    total[one][other] -= variance
    total[other][one] -= variance


def _add_pair_covariance(total: Matrix, first: int, left: int, right: int, covariance: float) -> None:
    """Add the covariance of the first bot's two comparisons.

    Each of the other two loses by its own, on average, if the first wins.
    """
    of_first, of_left, of_right = total[first], total[left], total[right]
    of_first[first] += 2 * covariance
    of_first[left] -= covariance
    of_first[right] -= covariance
    of_left[first] -= covariance
    of_right[first] -= covariance
    of_left[right] += covariance
    of_right[left] += covariance
