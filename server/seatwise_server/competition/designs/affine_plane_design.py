"""Tables of four for 4, 8, 16, 32 or 64 entrants, so that every pair meets exactly three times in entrants - 1 rounds.

The entrants are the points of an affine space over the field of two elements. The tables of a round are parallel planes. Let
g be a generator of the field with as many elements as entrants. Round i takes the planes with the directions g^i, g^(i+1)
and their sum. The sum is g^(i+j), with one j for all i. So each direction, and with it each pair, is taken three times.
"""

from __future__ import annotations

from typing import Final

PRIMITIVE_POLYNOMIALS: Final = {4: 0b111, 8: 0b1011, 16: 0b10011, 32: 0b100101, 64: 0b1000011}
"""By number of entrants, as bits: a polynomial modulo which repeated doubling runs through all numbers but 0."""


def affine_plane_rounds(entrants: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return all rounds. Raises `KeyError` for other numbers of entrants."""
    rounds, direction = [], 1
    for _ in range(entrants - 1):
        beside = _double_in_field(direction, entrants)
        rounds.append(_parallel_planes(entrants, direction, beside))
        direction = beside
    return tuple(rounds)


def _double_in_field(number: int, entrants: int) -> int:
    """Multiply by the generator: double, and reduce by the primitive polynomial."""
    twice = number << 1
    return twice ^ PRIMITIVE_POLYNOMIALS[entrants] if twice & entrants else twice


def _parallel_planes(entrants: int, one: int, other: int) -> tuple[tuple[int, ...], ...]:
    """Return the planes with these two directions.

    Bots that are `one` and `other` apart sit opposite each other. Over all rounds every pair does so once.
    """
    points = [
        point
        for point in range(entrants)
        if point == min(point, point ^ one, point ^ other, point ^ one ^ other)
    ]
    return tuple((point, point ^ one, point ^ one ^ other, point ^ other) for point in points)
