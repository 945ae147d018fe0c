"""Computes the chance in points, the base of intervals: the part that the bot and its opponents do not explain.

A schedule is fixed, so a strong opponent is not chance. Without this, intervals in a very unequal field would be
far too wide. A least-squares fit explains each seat's points as the sum of an effect of its bot and one of each
opponent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.addition import add_up
from seatwise_server.competition.numeric.linalg import Vector, dot_product, solve_system, zero_matrix

RIDGE: Final = 1e-9
"""A relative addition to the diagonal. Without it the effects of two bots that always play together have no unique split."""

SeatEffects = tuple[int, ...]
"""The numbers of the effects whose sum is expected at a seat: that of its bot, and one for each opponent."""


class _Design(NamedTuple):
    """The effects at the tables of a season."""

    bots: int
    seats: list[list[SeatEffects]]
    together: Mapping[tuple[int, int], int]
    """By two effects, at how many seats both are expected."""


def seat_residuals(
    results: Sequence[LoggedResult], values: Sequence[tuple[float, ...]]
) -> tuple[list[tuple[float, ...]], float]:
    """Return the residuals by match and seat, and the factor by which the true squares exceed theirs.

    The fit of the opponents removes a part of the chance, one degree of freedom for each bot. The factor restores
    it. The fit of a bot's own mean removes some too, but every interval around a mean already allows for that.
    """
    design = _make_design(tuple(result.bots for result in results))
    parts = _fit_effects(design, values)
    left = [
        tuple(value - add_up(parts[part] for part in seat) for seat, value in zip(table, own, strict=True))
        for table, own in zip(design.seats, values, strict=True)
    ]
    count = sum(map(len, left))
    return left, count / max(count - design.bots, 1)


@lru_cache(maxsize=4)  # one page fits several measures to the same tables
def _make_design(tables: tuple[tuple[str, ...], ...]) -> _Design:
    bots = sorted({bot for table in tables for bot in table})
    number = {bot: at for at, bot in enumerate(bots)}
    seats = [_effects_at_seats([number[bot] for bot in table], len(bots)) for table in tables]
    together: Counter[tuple[int, int]] = Counter()
    for table in seats:
        for seat in table:
            together.update((one, other) for one in seat for other in seat)
    return _Design(len(bots), seats, together)


def _effects_at_seats(numbers: Sequence[int], bots: int) -> list[SeatEffects]:
    return [
        (own, *(bots + other for there, other in enumerate(numbers) if there != seat))
        for seat, own in enumerate(numbers)
    ]


def _fit_effects(design: _Design, values: Sequence[tuple[float, ...]]) -> Vector:
    """Return the effect of each bot on its own points, and then the effect of each on its opponents' points."""
    unknowns = 2 * design.bots
    if not unknowns:
        return []
    sums = [0.0] * unknowns
    for table, own in zip(design.seats, values, strict=True):
        for seat, value in zip(table, own, strict=True):
            for part in seat:
                sums[part] += value
    matrix = zero_matrix(unknowns)
    for (one, other), count in design.together.items():
        matrix[one][other] = count * (1 + RIDGE * (one == other))
    scale = [matrix[part][part] for part in range(unknowns)]
    return solve_system(lambda x: [dot_product(row, x) for row in matrix], scale, sums)
