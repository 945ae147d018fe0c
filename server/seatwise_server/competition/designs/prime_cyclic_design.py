"""A starter for a prime number of entrants of which one sits out: even in meetings and in every distance of seats.

Take a number w with w^size = 1 modulo the prime. Its powers are the first table, and multiples of it are the other tables,
until all entrants but 0 sit. The difference between two seats is a power of w times one number. Over all tables and turns it
takes every value once.

The tables are cosets of a multiplicative subgroup, as in R. C. Bose's method of differences (1939).
"""

from __future__ import annotations


def prime_cyclic_round(entrants: int, size: int) -> tuple[tuple[int, ...], ...] | None:
    """Return the starter as one round. `None` if the number of entrants is not a prime that leaves one over."""
    if entrants % size != 1 or any(entrants % each == 0 for each in range(2, int(entrants**0.5) + 1)):
        return None
    root = next(each for each in range(2, entrants) if _multiplicative_order(each, entrants) == size)
    tables: list[tuple[int, ...]] = []
    seated: set[int] = {0}
    for first in range(1, entrants):
        if first not in seated:
            tables.append(tuple(first * pow(root, seat, entrants) % entrants for seat in range(size)))
            seated.update(tables[-1])
    return tuple(tables)


def _multiplicative_order(number: int, prime: int) -> int:
    """Return the least exponent (from 1) with number^exponent = 1 modulo the prime."""
    power, order = number, 1
    while power != 1:
        power, order = power * number % prime, order + 1
    return order
