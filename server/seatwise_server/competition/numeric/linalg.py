"""As much of linear algebra as a few hundred bots need, on rows of floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import mul

Vector = list[float]
Matrix = list[Vector]


def zero_matrix(size: int) -> Matrix:
    return [[0.0] * size for _ in range(size)]


def dot_product(one: Sequence[float], other: Sequence[float]) -> float:
    total: float = sum(map(mul, one, other))
    return total


def invert_matrix(matrix: Matrix) -> Matrix:
    """Of a symmetric positive definite one: Cholesky's root of it, that root's inverse, and the square of this."""
    size = len(matrix)
    columns = _invert_root(_cholesky_root(matrix))
    result = zero_matrix(size)
    for i, column in enumerate(
        columns
    ):  # above its diagonal place a column holds nothing, and so is kept from there on
        for j in range(i + 1):
            result[i][j] = result[j][i] = dot_product(column, columns[j][i - j :])
    return result


def _cholesky_root(matrix: Matrix) -> Matrix:
    """Rows that end at the diagonal."""
    rows: Matrix = []
    for i, given in enumerate(matrix):
        row: Vector = []
        for j, above in enumerate(rows):
            row.append(
                (given[j] - dot_product(row, above)) / above[j]
            )  # `row` ends before the diagonal of `above`
        row.append(math.sqrt(given[i] - dot_product(row, row)))
        rows.append(row)
    return rows


def _invert_root(root: Matrix) -> Matrix:
    columns: Matrix = []
    for j in range(len(root)):
        column = [1 / root[j][j]]
        for i in range(j + 1, len(root)):
            column.append(-dot_product(root[i][j:i], column) / root[i][i])
        columns.append(column)
    return columns


def sandwich_product(bread: Matrix, meat: Matrix) -> Matrix:
    """bread x meat x bread, of two symmetric matrices."""
    half = [[dot_product(row, column) for column in meat] for row in bread]
    product = zero_matrix(len(bread))
    for i, row in enumerate(half):
        for j in range(i + 1):
            product[i][j] = product[j][i] = dot_product(row, bread[j])
    return product


def solve_system(times: Callable[[Vector], Vector], scale: Vector, right: Vector) -> Vector:
    """x with `times(x) == right`, by conjugate gradients; `scale` is the diagonal of the matrix, which is not needed itself."""
    x, left = [0.0] * len(right), right
    ready = [value / by for value, by in zip(left, scale, strict=True)]
    step, weight = ready, dot_product(left, ready)
    enough = 1e-24 * weight
    for _ in range(3 * len(right)):
        if weight <= enough:
            break
        image = times(step)
        far = weight / dot_product(step, image)
        x = [value + far * by for value, by in zip(x, step, strict=True)]
        left = [value - far * by for value, by in zip(left, image, strict=True)]
        ready = [value / by for value, by in zip(left, scale, strict=True)]
        before, weight = weight, dot_product(left, ready)
        step = [value + weight / before * by for value, by in zip(ready, step, strict=True)]
    return x
