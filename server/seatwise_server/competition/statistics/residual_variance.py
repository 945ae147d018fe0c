"""What is left of points when the bot and those it met are taken off: the chance in them, which intervals are made of.

A schedule is fixed, so that a strong opponent is no chance: without this a field of very unequal bots would have intervals far
too wide. Points are taken as a sum of what a bot makes and of what each of its opponents lets it make, by least squares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import Vector, dot_product, solve_system, zero_matrix

RIDGE: Final = 1e-9
"""Where two bots always play together their parts cannot be told apart: this settles on one way to share them out."""

SeatEffects = tuple[int, ...]
"""The unknowns whose sum is expected there: the bot's own, and one for each opponent."""


def seat_residuals(
    results: Sequence[LoggedResult], values: Sequence[tuple[float, ...]]
) -> tuple[list[tuple[float, ...]], float]:
    """By match and seat what neither bot nor opponents explain; and how much larger its squares are in truth.

    Taking the opponents off takes a part of the chance along, one value for each bot, which is given back by the factor. (So
    does taking off a bot's own mean; but that every interval around a mean knows.)
    """
    bots = sorted({bot for result in results for bot in result.bots})
    number = {bot: at for at, bot in enumerate(bots)}
    seats = [_effects_at_seats([number[bot] for bot in result.bots], len(bots)) for result in results]
    parts = _fit_effects(seats, values, 2 * len(bots))
    left = [
        tuple(value - sum(parts[part] for part in seat) for seat, value in zip(table, own, strict=True))
        for table, own in zip(seats, values, strict=True)
    ]
    count = sum(map(len, left))
    return left, count / max(count - len(bots), 1)


def _effects_at_seats(numbers: Sequence[int], bots: int) -> list[SeatEffects]:
    return [
        (own, *(bots + other for there, other in enumerate(numbers) if there != seat))
        for seat, own in enumerate(numbers)
    ]


def _fit_effects(
    seats: Sequence[Sequence[SeatEffects]], values: Sequence[tuple[float, ...]], unknowns: int
) -> Vector:
    """What each bot makes, and what each lets its opponents make."""
    if not unknowns:
        return []
    together: Counter[tuple[int, int]] = Counter()
    sums = [0.0] * unknowns
    for table, own in zip(seats, values, strict=True):
        for seat, value in zip(table, own, strict=True):
            together.update((one, other) for one in seat for other in seat)
            for part in seat:
                sums[part] += value
    matrix = zero_matrix(unknowns)
    for (one, other), count in together.items():
        matrix[one][other] = count * (1 + RIDGE * (one == other))
    scale = [matrix[part][part] for part in range(unknowns)]
    return solve_system(lambda x: [dot_product(row, x) for row in matrix], scale, sums)
