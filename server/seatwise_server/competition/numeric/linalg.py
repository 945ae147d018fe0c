"""Linear algebra for some tens of unknowns, on lists of floats.

It is written by hand, without numpy, so that one log gives the same published figures on every machine (see `numeric`).
Every sum runs from the first element to the last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import add, mul

# One way to add floats, for every Python.


def _add_from_first_to_last(values: Iterable[float]) -> float:
    return reduce(add, values, 0)


_rounds_each_time = sum([1.0, 1e100, 1.0, -1e100]) == 0.0
add_up = sum if _rounds_each_time else _add_from_first_to_last
"""Returns the sum, added from the first value to the last and rounded after each; 0 if there are none."""


Vector = list[float]
Matrix = list[Vector]
"""Rows of equal length."""


def zero_matrix(size: int) -> Matrix:
    """Return a square matrix of zeros."""
    return [[0.0] * size for _ in range(size)]


def dot_product(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the sum of products. The longer vector is cut to the length of the other."""
    total: float = add_up(map(mul, one, other))
    return total


def solve_system(times: Callable[[Vector], Vector], scale: Vector, right: Vector) -> Vector:
    """Return x with `times(x) == right`, for a symmetric positive definite matrix, by preconditioned conjugate gradients.

    `times` multiplies a vector by the matrix, which itself is not needed. `scale` is its diagonal, the preconditioner.
    Source: M. R. Hestenes and E. Stiefel, "Methods of Conjugate Gradients for Solving Linear Systems" (1952).
    """
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


# Strengths of bots that meet at tables


def center_values(values: Sequence[float]) -> Vector:
    """Return each value minus their mean."""
    mean = add_up(values) / len(values)
    return [value - mean for value in values]


def solve_strengths(
    tables: Sequence[Sequence[str]], scores: Sequence[Sequence[float]], prior: float = 0.0
) -> dict[str, float]:
    """Return the strength of each bot at these tables, by least squares: a centered score is a strength less the table's mean.

    `prior` is the weight of a comparison with strength 0. It is needed where no matches link some bots to the others.
    """
    sums = dict.fromkeys(sorted({bot for table in tables for bot in table}), 0.0)
    pairs: Counter[tuple[str, str, int]] = Counter()
    for table, score in zip(tables, scores, strict=True):
        pairs.update((one, other, len(table)) for one, other in combinations(sorted(table), 2))
        for bot, own in zip(table, score, strict=True):
            sums[bot] += own
    weights: dict[tuple[str, str], float] = defaultdict(float)
    for (one, other, size), count in sorted(pairs.items()):
        weights[one, other] += count / size
    return solve_field(weights, sums, prior)


def solve_field(
    weights: Mapping[tuple[str, str], float], sums: Mapping[str, float], prior: float = 0.0
) -> dict[str, float]:
    """Return the strengths whose differences explain the sums, where two bots are compared with so much weight."""
    if not sums:
        return {}
    number = {bot: at for at, bot in enumerate(sums)}
    edges = [(number[one], number[other], weight) for (one, other), weight in weights.items()]
    scale = [prior] * len(sums)
    for one, other, weight in edges:
        scale[one] += weight
        scale[other] += weight

    def times(x: Vector) -> Vector:
        image = [by * value for by, value in zip(scale, x, strict=True)]
        for one, other, weight in edges:
            image[one] -= weight * x[other]
            image[other] -= weight * x[one]
        return image

    return dict(zip(sums, solve_system(times, scale, list(sums.values())), strict=True))
