"""Estimates strengths and their covariance from counted comparisons, with numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seatwise_server.competition.numeric.linalg import Matrix, Vector
from seatwise_server.competition.numeric.ordered_arrays import FloatArray, invert_array, sandwich_product
from seatwise_server.competition.ratings.bradley_terry import (
    information_matrix,
    maximize_likelihood,
    prior_information,
)
from seatwise_server.competition.ratings.comparisons import Comparisons
from seatwise_server.competition.ratings.sandwich_covariance import gradient_covariance


def estimate_strengths(
    seen: Comparisons, groups: Sequence[int], *, has_design_effect: bool = True
) -> tuple[Vector, Matrix]:
    """Return the likeliest strengths, and the covariance of the strengths above the means of their groups.

    The prior is information too, so its part varies with the rest.
    """
    found = maximize_likelihood(seen)
    meat = gradient_covariance(seen, found, has_design_effect=has_design_effect)
    for number, strength in enumerate(found):
        meat[number, number] += prior_information(strength)
    spread = sandwich_product(invert_array(information_matrix(seen, found)), meat)
    centered: Matrix = _center_columns(_center_columns(spread.T, groups).T, groups).T.tolist()
    return found, centered


def _center_columns(matrix: FloatArray, groups: Sequence[int]) -> FloatArray:
    """Return the matrix minus the mean of each column over the rows of the same group."""
    sums, sizes = np.zeros_like(matrix), np.zeros(len(matrix))
    for row, group in zip(matrix, groups, strict=True):  # a group has the number of one of its bots
        sums[group] += row
        sizes[group] += 1
    of_rows = list(groups)
    return matrix - sums[of_rows] / sizes[of_rows, np.newaxis]
