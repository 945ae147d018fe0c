"""Find the strengths under which the results are likeliest, by the model of Bradley and Terry for every two bots of a table.

The difference of two strengths is the log-odds that the first finishes ahead where both sit. A shared rank counts half. In
the model of Plackett and Luce for whole tables this holds exactly for every two bots. If points follow another model, the
strengths still mean just this.

Source: R. A. Bradley and M. E. Terry, "Rank Analysis of Incomplete Block Designs" (1952).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from seatwise_server.competition.numeric.linalg import Matrix, Vector, solve_system, zero_matrix
from seatwise_server.competition.ratings.comparisons import Comparisons

PRIOR_DRAWS = 1.0
"""The weak prior, as the number of drawn comparisons with a bot of strength 0.

It keeps the strength of a bot that has won everything finite. It also reduces differences between bots that have
played little by about as much as the likelihood exaggerates them.
"""
SMALLEST_NEWTON_STEP = 1e-10
"""The search ends at a step that is smaller in every strength."""
_MOST_NEWTON_STEPS = 200


def probability_ahead(difference: float) -> float:
    """Return the probability that belongs to these log-odds: the logistic function."""
    return 1 / (1 + math.exp(-difference)) if difference > -700 else 0.0


def maximize_likelihood(seen: Comparisons) -> Vector:
    """Return the likeliest strengths, by Newton's method.

    The likelihood is concave, so there is one maximum, and every start leads to it.
    """
    strengths = [0.0] * len(seen.bots)
    for _ in range(_MOST_NEWTON_STEPS):
        step = _newton_step(seen, strengths)
        longest = max(map(abs, step), default=0.0)
        shorter = (
            min(1.0, 2 / longest) if longest else 1.0
        )  # longer steps from far away could oscillate forever
        strengths = [value + shorter * by for value, by in zip(strengths, step, strict=True)]
        if longest < SMALLEST_NEWTON_STEP:
            break
    return strengths


def information_matrix(seen: Comparisons, strengths: Sequence[float]) -> Matrix:
    """Return the negative second derivatives of the log-likelihood, the prior's included."""
    curve = zero_matrix(len(strengths))
    for (one, other), weight in _pair_weights(seen, strengths):
        curve[one][other] -= weight
        curve[other][one] -= weight
    for number, value in enumerate(information_by_bot(seen, strengths)):
        curve[number][number] = value + prior_information(strengths[number])
    return curve


def information_by_bot(seen: Comparisons, strengths: Sequence[float]) -> Vector:
    """Return the information that its matches give about each bot. A comparison whose outcome is certain gives none."""
    known = [0.0] * len(strengths)
    for (one, other), weight in _pair_weights(seen, strengths):
        known[one] += weight
        known[other] += weight
    return known


def prior_information(strength: float) -> float:
    """Return the information that the prior gives about a bot of this strength."""
    p = probability_ahead(strength)
    return PRIOR_DRAWS * p * (1 - p)


def _pair_weights(seen: Comparisons, strengths: Sequence[float]) -> Iterable[tuple[tuple[int, int], float]]:
    for pair, met, _ in seen.pairs:
        p = probability_ahead(strengths[pair[0]] - strengths[pair[1]])
        yield pair, met * p * (1 - p)


def _newton_step(seen: Comparisons, strengths: Vector) -> Vector:
    """Solve for the step without building the matrix, which is sparse."""
    weights = list(_pair_weights(seen, strengths))
    scale = [
        known + prior_information(own)
        for known, own in zip(information_by_bot(seen, strengths), strengths, strict=True)
    ]

    def times(x: Vector) -> Vector:
        image = [by * value for by, value in zip(scale, x, strict=True)]
        for (one, other), weight in weights:
            image[one] -= weight * x[other]
            image[other] -= weight * x[one]
        return image

    return solve_system(times, scale, _likelihood_gradient(seen, strengths))


def _likelihood_gradient(seen: Comparisons, strengths: Vector) -> Vector:
    slope = [PRIOR_DRAWS * (0.5 - probability_ahead(own)) for own in strengths]
    for (one, other), met, won in seen.pairs:
        more = won - met * probability_ahead(strengths[one] - strengths[other])
        slope[one] += more
        slope[other] -= more
    return slope
