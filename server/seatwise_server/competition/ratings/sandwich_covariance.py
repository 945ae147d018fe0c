"""Estimates how much the sums behind a fit would vary if the same season were played again.

The comparisons of one table depend on each other, and so do all tables of one duplicate deal. So the curvature of
the likelihood, which treats them as independent, does not give the spread of its maximum. The covariance of whole
clusters is needed too: the "sandwich" estimator of Huber (1967) and White (1980).

That covariance comes from the clusters themselves. If the matches of a bot give little information, because they
are few or almost certain, the model of Plackett and Luce replaces it. Otherwise a bot whose results have hardly
varied yet would seem never to vary. The model knows only single matches. Where a deal is played several times, its
covariance is multiplied by design effects: by how much the shared deals varied more, or less, than the same number of
single matches would. A rotation gives every bot the same cards, so its design effects are far below 1.
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


def gradient_covariance(seen: Comparisons, strengths: Vector, *, has_design_effect: bool = True) -> Matrix:
    """Return the covariance of the sums of won comparisons, one for each bot: the meat of the sandwich.

    Without `has_design_effect` the model takes the matches of one deal for independent, as version 1 of the statistics did.
    """
    trust = [known / (known + HALF_TRUSTED_INFORMATION) for known in information_by_bot(seen, strengths)]
    total = zero_matrix(len(strengths))
    single, shared = defaultdict[TableMembers, float](float), defaultdict[TableMembers, float](float)
    for piece, count in seen.clusters:
        sums = _cluster_residuals(piece, strengths)
        seen_part = min(trust[bot] for bot in sums)
        _add_outer_product(total, sums, count * seen_part)
        modelled = shared if has_design_effect and len(piece) > 1 else single
        for match in piece:
            modelled[tuple(bot for bot, _ in match)] += count * (1 - seen_part)
    for company, weight in sorted(single.items()):
        _add_model_covariance(total, company, strengths, weight)
    if shared:
        _add_shared_covariance(total, shared, strengths, measure_design_effects(seen, strengths))
    return total


def measure_design_effects(seen: Comparisons, strengths: Vector) -> Vector:
    """Return by bot its observed variance on shared deals, as a multiple of what the model says of as many single matches.

    No bot has less than all bots together, because a single bot's own variance is known badly. 1 if no deal was shared.
    """
    observed, modelled = [0.0] * len(strengths), [0.0] * len(strengths)
    for piece, count in seen.clusters:
        if len(piece) > 1:
            for bot, value in _cluster_residuals(piece, strengths).items():
                observed[bot] += count * value * value
            for company in (tuple(bot for bot, _ in match) for match in piece):
                for bot, variance in _model_variances(company, strengths):
                    modelled[bot] += count * variance
    if not sum(modelled):
        return [1.0] * len(strengths)
    pooled = sum(observed) / sum(modelled)
    return [max(pooled, own / model if model else 0.0) for own, model in zip(observed, modelled, strict=True)]


def _model_variances(company: TableMembers, strengths: Vector) -> list[tuple[int, float]]:
    """Return the variance that the model gives to each bot of one table."""
    covariance = zero_matrix(len(company))
    places = tuple(range(len(company)))
    _add_model_covariance(covariance, places, [strengths[bot] for bot in company], 1.0)
    return [(bot, covariance[place][place]) for place, bot in enumerate(company)]


def _add_shared_covariance(
    total: Matrix, shared: dict[TableMembers, float], strengths: Vector, effects: Vector
) -> None:
    """Add what the model says of matches on shared deals, each bot's deviation multiplied by the root of its effect."""
    modelled = zero_matrix(len(strengths))
    for company, weight in sorted(shared.items()):
        _add_model_covariance(modelled, company, strengths, weight)
    roots = [math.sqrt(effect) for effect in effects]
    for one, row in enumerate(modelled):
        for other, value in enumerate(row):
            total[one][other] += value * roots[one] * roots[other]


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
