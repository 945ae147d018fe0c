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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from seatwise_server.competition.numeric.linalg import Matrix, Vector, add_up, solve_system
from seatwise_server.competition.ratings.comparisons import (
    LEAST_DIFFERENCE,
    Cluster,
    Comparisons,
    probability_ahead,
)

HALF_TRUSTED_INFORMATION = 5.0
"""The amount of information about a bot at which its own clusters and the model have half the weight each."""
LEAST_LOG_ODDS = -300.0
"""The least log-odds against the strongest bot of a table. The square of such odds is still a positive float."""
TERMS_AT_ONCE = 2**19
"""So many terms of sums are in arrays at once, where a single cluster has no more. They take some 25 MB."""

TableMembers = tuple[int, ...]
"""The numbers of the bots at a table."""
_Each = TypeVar("_Each")
CountedCluster = tuple[Cluster, int]
"""A cluster, and how often it occurred."""


def gradient_covariance(seen: Comparisons, strengths: Vector) -> FloatArray:
    """Return the covariance of the sums of won comparisons, one for each bot: the meat of the sandwich."""
    known = information_by_bot(seen, strengths)
    trust = known / (known + HALF_TRUSTED_INFORMATION)
    total = np.zeros((len(strengths), len(strengths)))
    single, shared = defaultdict[TableMembers, float](float), defaultdict[TableMembers, float](float)
    for clusters in _split_in_chunks(seen.clusters, _count_cluster_terms):
        residuals = _measure_residuals(clusters, strengths)
        seen_parts = np.minimum.reduceat(trust[residuals.bots], residuals.starts)
        _add_outer_products(total, residuals, residuals.counts * seen_parts)
        for (piece, count), seen_part in zip(clusters, seen_parts.tolist(), strict=True):
            modelled = shared if len(piece) > 1 else single
            for match in piece:
                modelled[tuple([bot for bot, _ in match])] += count * (1 - seen_part)
    add_model_covariance(total, single, strengths)
    if shared:
        _add_shared_covariance(total, shared, strengths, measure_design_effects(seen, strengths))
    return total


def measure_design_effects(seen: Comparisons, strengths: Vector) -> Vector:
    """Return by bot its observed variance on shared deals, as a multiple of what the model says of as many single matches.

    No bot has less than all bots together, because a single bot's own variance is known badly. 1 if no deal was shared.
    """
    observed, modelled = np.zeros(len(strengths)), np.zeros(len(strengths))
    on_shared_deals = [(piece, count) for piece, count in seen.clusters if len(piece) > 1]
    for clusters in _split_in_chunks(on_shared_deals, _count_cluster_terms):
        residuals = _measure_residuals(clusters, strengths)
        counts = np.repeat(residuals.counts, residuals.sizes)
        add_in_order(observed, residuals.bots, counts * residuals.sums * residuals.sums)
        _add_model_variances(modelled, clusters, strengths)
    if not add_up(modelled.tolist()):
        return [1.0] * len(strengths)
    pooled = add_up(observed.tolist()) / add_up(modelled.tolist())
    both = zip(observed.tolist(), modelled.tolist(), strict=True)
    return [max(pooled, own / model if model else 0.0) for own, model in both]


def _add_model_variances(modelled: FloatArray, clusters: Sequence[CountedCluster], strengths: Vector) -> None:
    """Add by bot the variance that the model gives to it in each match."""
    tables = [tuple([bot for bot, _ in match]) for piece, _ in clusters for match in piece]
    counts = [float(count) for piece, count in clusters for match in piece for _ in match]
    seats = _Seats(tables, [1.0] * len(tables))
    variances = np.zeros(len(seats.bots))
    rows, columns, values = _model_terms(seats, strengths)
    is_own = rows == columns
    add_in_order(variances, rows[is_own], values[is_own])
    add_in_order(modelled, seats.bots, np.array(counts) * variances)


def _add_shared_covariance(
    total: FloatArray, shared: Mapping[TableMembers, float], strengths: Vector, effects: Vector
) -> None:
    """Add what the model says of matches on shared deals, each bot's deviation multiplied by the root of its effect."""
    modelled = np.zeros_like(total)
    add_model_covariance(modelled, shared, strengths)
    roots = np.sqrt(np.array(effects))
    total += modelled * roots[:, np.newaxis] * roots


# The observed covariance


@dataclass(frozen=True, slots=True)
class ClusterResiduals:
    """By how much each bot of a cluster won more than expected there. One cluster follows the other."""

    bots: IndexArray
    sums: FloatArray
    sizes: IndexArray
    """By cluster its number of bots."""
    counts: FloatArray
    """By cluster how often it occurred."""

    @property
    def starts(self) -> IndexArray:
        """By cluster the place of its first bot."""
        return np.cumsum(self.sizes) - self.sizes


def _measure_residuals(clusters: Sequence[CountedCluster], strengths: Vector) -> ClusterResiduals:
    matches = [(number, match) for number, (piece, _) in enumerate(clusters) for match in piece]
    bots, ranks = np.array([seat for _, match in matches for seat in match], np.int64).T
    clusters_of_seats = np.array([number for number, match in matches for _ in match], np.int64)
    members, places = np.unique(clusters_of_seats * len(strengths) + bots, return_inverse=True)
    one, other = pair_places(np.array([len(match) for _, match in matches], np.int64))
    one, other = one[one < other], other[one < other]
    values = np.array(strengths)
    won = np.where(ranks[one] == ranks[other], 0.5, ranks[one] < ranks[other])
    more = won - probabilities_ahead(values[bots[one]] - values[bots[other]])
    sums = np.zeros(len(members))
    both = np.stack([places[one], places[other]], axis=1)
    add_in_order(sums, both.ravel(), np.stack([more, -more], axis=1).ravel())
    cluster_numbers, member_bots = np.divmod(members, len(strengths))
    counts = np.array([count for _, count in clusters], float)
    return ClusterResiduals(member_bots, sums, np.bincount(cluster_numbers), counts)


def _add_outer_products(total: FloatArray, residuals: ClusterResiduals, weights: FloatArray) -> None:
    weighted = np.repeat(weights, residuals.sizes) * residuals.sums
    one, other = pair_places(residuals.sizes)
    cells = residuals.bots[one] * len(total) + residuals.bots[other]
    add_in_order(total.reshape(-1), cells, weighted[one] * residuals.sums[other])


# The covariance by the model


class _Seats:
    """The seats of some tables. One table follows the other."""

    def __init__(self, tables: Sequence[TableMembers], weights: Sequence[float]) -> None:
        self.sizes: IndexArray = np.array([len(table) for table in tables], np.int64)
        self.starts: IndexArray = np.cumsum(self.sizes) - self.sizes
        self.bots: IndexArray = np.array([bot for table in tables for bot in table], np.int64)
        self.weights: FloatArray = np.array(weights)

    def relative_odds(self, strengths: Vector) -> FloatArray:
        """Return each bot's odds against the strongest of its table, at least exp(`LEAST_LOG_ODDS`)."""
        values = np.array(strengths)[self.bots]
        best = np.repeat(np.maximum.reduceat(values, self.starts), self.sizes)
        return np.array(list(map(math.exp, np.maximum(values - best, LEAST_LOG_ODDS).tolist())), float)


def add_model_covariance(total: FloatArray, tables: Mapping[TableMembers, float], strengths: Vector) -> None:
    """Add what Plackett and Luce's model says of tables with these weights. Only comparisons that share a bot are dependent."""
    for some in _split_in_chunks(sorted(tables.items()), lambda table: _count_table_terms(table[0])):
        seats = _Seats([table for table, _ in some], [weight for _, weight in some])
        rows, columns, values = _model_terms(seats, strengths)
        add_in_order(total.reshape(-1), seats.bots[rows] * len(total) + seats.bots[columns], values)


def _model_terms(seats: _Seats, strengths: Vector) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return the two seats of each term of the covariance, and its value, table by table."""
    odds = seats.relative_odds(strengths)
    tables, rows, columns, values = [], [], [], []
    for size in sorted(set(seats.sizes.tolist())):
        chosen = np.flatnonzero(seats.sizes == size)
        starts = seats.starts[chosen]
        odds_by_seat = odds[starts + np.arange(size)[:, np.newaxis]]
        own, other, found = zip(*_terms_of_size(size, odds_by_seat, seats.weights[chosen]), strict=True)
        tables.append(np.repeat(chosen, len(found)))
        rows.append(np.add.outer(starts, np.array(own, np.int64)).ravel())
        columns.append(np.add.outer(starts, np.array(other, np.int64)).ravel())
        values.append(np.stack(found, axis=1).ravel())
    order = np.argsort(np.concatenate(tables), kind="stable")
    return np.concatenate(rows)[order], np.concatenate(columns)[order], np.concatenate(values)[order]


def _terms_of_size(size: int, odds: FloatArray, weights: FloatArray) -> Iterator[tuple[int, int, FloatArray]]:
    """Yield the seats of each term, and its values at all tables of this size."""
    for one, other in combinations(range(size), 2):
        both = odds[one] + odds[other]
        variance = weights * odds[one] * odds[other] / (both * both)
        yield from (
            (one, one, variance),
            (other, other, variance),
            (one, other, -variance),
            (other, one, -variance),
        )
    for three in combinations(range(size), 3):
        of_all = odds[three[0]] + odds[three[1]] + odds[three[2]]
        for first, left, right in (three, three[1:] + three[:1], three[2:] + three[:2]):
            own = odds[first]
            apart = own * own / ((own + odds[left]) * (own + odds[right]))
            yield from _covariance_terms(first, left, right, weights * (own / of_all - apart))


def _covariance_terms(
    first: int, left: int, right: int, covariance: FloatArray
) -> Iterator[tuple[int, int, FloatArray]]:
    """Yield the covariance of the first bot's two comparisons. The others lose by their own, on average, if the first wins."""
    yield first, first, 2 * covariance
    yield first, left, -covariance
    yield first, right, -covariance
    yield left, first, -covariance
    yield right, first, -covariance
    yield left, right, covariance
    yield right, left, covariance


# Chunks


def _count_table_terms(table: Sequence[object]) -> int:
    """Return the number of terms of `_terms_of_size`."""
    return 4 * math.comb(len(table), 2) + 21 * math.comb(len(table), 3)


def _count_cluster_terms(counted: CountedCluster) -> int:
    piece, _ = counted
    return sum(map(len, piece)) ** 2 + sum(map(_count_table_terms, piece))


def _split_in_chunks(
    all_of_them: Sequence[_Each], count_terms: Callable[[_Each], int]
) -> Iterator[Sequence[_Each]]:
    """Yield the elements in their order, as many at a time as have `TERMS_AT_ONCE` together, and at least one."""
    start = terms = 0
    for place, each in enumerate(all_of_them):
        terms += count_terms(each)
        if terms > TERMS_AT_ONCE and place > start:
            yield all_of_them[start:place]
            start, terms = place, count_terms(each)
    if start < len(all_of_them):
        yield all_of_them[start:]


# The strengths and their covariance


def estimate_strengths(
    seen: Comparisons, groups: Sequence[int], shares: Sequence[float]
) -> tuple[Vector, Matrix]:
    """Return the likeliest strengths above the references of their groups, and their covariance, to which the prior adds its part."""
    found = maximize_likelihood(seen)
    meat = gradient_covariance(seen, found)
    meat[np.diag_indices_from(meat)] += _prior_informations(found)
    spread = sandwich_product(invert_array(information_matrix(seen, found)), meat)
    centered: Matrix = _center_columns(_center_columns(spread.T, groups, shares).T, groups, shares).T.tolist()
    [values] = _center_columns(np.array([found]).T, groups, shares).T.tolist()
    return values, centered


def _center_columns(matrix: FloatArray, groups: Sequence[int], shares: Sequence[float]) -> FloatArray:
    """Return the matrix minus the weighted mean of each column over the rows of the same group."""
    means = np.zeros_like(matrix)  # a group has the number of one of its bots
    for row, group, share in zip(matrix, groups, shares, strict=True):
        means[group] += share * row
    return matrix - means[list(groups)]


# Find the strengths under which the results are likeliest, by the model of Bradley and Terry for every two bots of a table.

PRIOR_DRAWS = 1.0
"""The weak prior, as the number of drawn comparisons with a bot of strength 0.

It keeps the strength of a bot that has won everything finite. It also reduces differences between bots that have
played little by about as much as the likelihood exaggerates them.
"""
SMALLEST_NEWTON_STEP = 1e-10
"""The search ends at a step that is smaller in every strength."""
_MOST_NEWTON_STEPS = 200


def probabilities_ahead(differences: FloatArray) -> FloatArray:
    """Return `probability_ahead` of each difference, with the same digits: the exponential is that of `math`, not of numpy."""
    powers = map(math.exp, (-np.maximum(differences, LEAST_DIFFERENCE)).tolist())
    odds_against = np.fromiter(powers, float, len(differences))
    return np.where(differences > LEAST_DIFFERENCE, 1 / (1 + odds_against), 0.0)


class PairArrays:
    """The pairs of a log as arrays, in their order."""

    def __init__(self, seen: Comparisons) -> None:
        self.bots: IndexArray = np.array([pair for pair, _, _ in seen.pairs], np.int64).reshape(-1, 2)
        """The numbers of both bots of each pair."""
        self.met: FloatArray = np.array([met for _, met, _ in seen.pairs], float)
        self.won: FloatArray = np.array([won for _, _, won in seen.pairs], float)

    def probabilities(self, strengths: FloatArray) -> FloatArray:
        """Return by pair the probability that the first bot finishes ahead."""
        return probabilities_ahead(strengths[self.bots[:, 0]] - strengths[self.bots[:, 1]])

    def add_by_bot(self, total: FloatArray, values: FloatArray, others: FloatArray | None = None) -> None:
        """Add by pair a value to the sum of its first bot, and the same or another one to that of the second."""
        both = np.stack([values, values if others is None else others], axis=1)
        add_in_order(total, self.bots.ravel(), both.ravel())


def maximize_likelihood(seen: Comparisons) -> Vector:
    """Return the likeliest strengths, by Newton's method. The likelihood is concave: every start leads to its one maximum."""
    pairs, strengths = PairArrays(seen), [0.0] * len(seen.bots)
    for _ in range(_MOST_NEWTON_STEPS):
        step = _newton_step(pairs, strengths)
        longest = max(map(abs, step), default=0.0)
        shorter = 2 / max(2.0, longest)  # longer steps from far away could oscillate forever
        strengths = [value + shorter * by for value, by in zip(strengths, step, strict=True)]
        if longest < SMALLEST_NEWTON_STEP:
            break
    return strengths


def information_matrix(seen: Comparisons, strengths: Sequence[float]) -> FloatArray:
    """Return the negative second derivatives of the log-likelihood, the prior's included."""
    pairs, curve = PairArrays(seen), np.zeros((len(strengths), len(strengths)))
    values = np.array(strengths)
    weights, (one, other) = _pair_weights(pairs, pairs.probabilities(values)), pairs.bots.T
    curve[one, other] = curve[other, one] = -weights
    np.fill_diagonal(curve, _sum_weights(pairs, weights, len(values)) + _prior_informations(strengths))
    return curve


def information_by_bot(seen: Comparisons, strengths: Sequence[float]) -> FloatArray:
    """Return the information that its matches give about each bot. A comparison whose outcome is certain gives none."""
    pairs, values = PairArrays(seen), np.array(strengths)
    return _sum_weights(pairs, _pair_weights(pairs, pairs.probabilities(values)), len(values))


def prior_information(strength: float) -> float:
    """Return the information that the prior gives about a bot of this strength."""
    p = probability_ahead(strength)
    return PRIOR_DRAWS * p * (1 - p)


def _prior_informations(strengths: Sequence[float]) -> FloatArray:
    return np.array([prior_information(strength) for strength in strengths], float)


def _pair_weights(pairs: PairArrays, p: FloatArray) -> FloatArray:
    return pairs.met * p * (1 - p)


def _sum_weights(pairs: PairArrays, weights: FloatArray, bots: int) -> FloatArray:
    known = np.zeros(bots)
    pairs.add_by_bot(known, weights)
    return known


def _newton_step(pairs: PairArrays, strengths: Vector) -> Vector:
    """Solve for the step without building the matrix, which is sparse."""
    p = pairs.probabilities(np.array(strengths))
    weights = _pair_weights(pairs, p)
    scale = _sum_weights(pairs, weights, len(strengths)) + _prior_informations(strengths)
    one, other = pairs.bots.T

    def times(x: Vector) -> Vector:
        values = np.array(x)
        image = scale * values
        pairs.add_by_bot(image, -weights * values[other], -weights * values[one])
        found: Vector = image.tolist()
        return found

    return solve_system(times, scale.tolist(), _likelihood_gradient(pairs, p, strengths))


def _likelihood_gradient(pairs: PairArrays, p: FloatArray, strengths: Vector) -> Vector:
    slope = np.array([PRIOR_DRAWS * (0.5 - probability_ahead(own)) for own in strengths], float)
    more = pairs.won - pairs.met * p
    pairs.add_by_bot(slope, more, -more)
    found: Vector = slope.tolist()
    return found


# Linear algebra for hundreds of bots, on arrays of numpy: 20 times as fast as `linalg`, with the same digits.

FloatArray: TypeAlias = NDArray[np.float64]
IndexArray: TypeAlias = NDArray[np.int64]


def add_in_order(total: FloatArray, places: IndexArray, values: FloatArray) -> None:
    """Add each value at its place, from the first to the last. A place may occur more than once."""
    np.add.at(total, places, values)


def pair_places(sizes: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return every ordered pair of places within the same block, for blocks of these sizes that follow each other.

    The pairs come in ascending order of the first place, and then of the second. A place is also paired with itself.
    """
    partners = np.repeat(sizes, sizes)
    block_starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = np.repeat(np.arange(len(partners)), partners)
    number = np.arange(len(first)) - np.repeat(np.cumsum(partners) - partners, partners)
    return first, np.repeat(block_starts, partners) + number


def invert_array(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a symmetric matrix, from that of its Cholesky root. Raises `ValueError` if it is not positive definite."""
    product = np.zeros_like(matrix)
    for number, row in enumerate(_invert_root(_cholesky_root(matrix))):
        own = row[: number + 1]
        product[: number + 1, : number + 1] += np.multiply.outer(own, own)
    return product


def _cholesky_root(matrix: FloatArray) -> FloatArray:
    """Return the lower triangular root."""
    root, sums = np.zeros_like(matrix), np.zeros_like(matrix)
    for j in range(len(matrix)):
        column = matrix[j:, j] - sums[j:, j]
        if not column[0] > 0:
            raise ValueError("the matrix is not positive definite")
        root[j, j] = np.sqrt(column[0])
        root[j + 1 :, j] = below = column[1:] / root[j, j]
        sums[j + 1 :, j + 1 :] += np.multiply.outer(below, below)
    return root


def _invert_root(root: FloatArray) -> FloatArray:
    """Return the inverse of a lower triangular matrix."""
    inverse, sums = np.zeros_like(root), np.zeros_like(root)
    for i in range(len(root)):
        inverse[i, :i] = -sums[i, :i] / root[i, i]
        inverse[i, i] = 1 / root[i, i]
        sums[i + 1 :, : i + 1] += np.multiply.outer(root[i + 1 :, i], inverse[i, : i + 1])
    return inverse


def sandwich_product(bread: FloatArray, meat: FloatArray) -> FloatArray:
    """Return bread x meat x bread, for two symmetric matrices."""
    product = _multiply_rows(_multiply_rows(bread, meat), bread)
    return np.tril(product) + np.tril(product, -1).T


def _multiply_rows(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the dot product of each row of the first with each row of the second."""
    product, terms = np.zeros_like(one), np.empty_like(one)
    for left, right in zip(one.T.copy(), other.T.copy(), strict=True):
        np.multiply.outer(left, right, out=terms)
        product += terms
    return product
