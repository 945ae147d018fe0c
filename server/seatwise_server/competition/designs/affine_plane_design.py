"""Tables of four for 4, 8, 16, 32 or 64 entrants, so that every pair meets exactly three times in entrants - 1 rounds.

The entrants are the points of a binary space; the tables of a round are its parallel planes. With g a generator of the field,
round i takes the planes of directions g^i, g^(i+1) and their sum, which is g^(i+j) for one j and all i: so each direction is
taken three times, and with it each pair.
"""

from __future__ import annotations

from typing import Final

PRIMITIVE_POLYNOMIALS: Final = {4: 0b111, 8: 0b1011, 16: 0b10011, 32: 0b100101, 64: 0b1000011}
"""By the number of entrants: a polynomial by which doubling runs through all numbers but 0."""


def affine_plane_rounds(entrants: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """All rounds; `KeyError` for other numbers of entrants."""
    rounds, direction = [], 1
    for _ in range(entrants - 1):
        beside = _double_in_field(direction, entrants)
        rounds.append(_parallel_planes(entrants, direction, beside))
        direction = beside
    return tuple(rounds)


def _double_in_field(number: int, entrants: int) -> int:
    twice = number << 1
    return twice ^ PRIMITIVE_POLYNOMIALS[entrants] if twice & entrants else twice


def _parallel_planes(entrants: int, one: int, other: int) -> tuple[tuple[int, ...], ...]:
    """Round the table so that those who are one and other apart sit face to face: in all rounds each pair does so once."""
    points = [
        point
        for point in range(entrants)
        if point == min(point, point ^ one, point ^ other, point ^ one ^ other)
    ]
    return tuple((point, point ^ one, point ^ one ^ other, point ^ other) for point in points)
