"""Find the strengths under which the results are likeliest, by the model of Bradley and Terry for every two bots of a table.

The difference of two strengths is the log-odds that the first finishes ahead where both sit. A shared rank counts half. In
the model of Plackett and Luce for whole tables this holds exactly for every two bots. If points follow another model, the
strengths still mean just this.

Source: R. A. Bradley and M. E. Terry, "Rank Analysis of Incomplete Block Designs" (1952).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from seatwise_server.competition.numeric.linalg import Vector, solve_system
from seatwise_server.competition.numeric.ordered_arrays import FloatArray, IndexArray, add_in_order
from seatwise_server.competition.ratings.comparisons import LEAST_DIFFERENCE, Comparisons, probability_ahead

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
    """Return the likeliest strengths, by Newton's method.

    The likelihood is concave, so there is one maximum, and every start leads to it.
    """
    pairs, strengths = PairArrays(seen), [0.0] * len(seen.bots)
    for _ in range(_MOST_NEWTON_STEPS):
        step = _newton_step(pairs, strengths)
        longest = max(map(abs, step), default=0.0)
        shorter = (
            min(1.0, 2 / longest) if longest else 1.0
        )  # longer steps from far away could oscillate forever
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
