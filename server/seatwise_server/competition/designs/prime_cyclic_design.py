"""A starter for a prime number of entrants of which one sits out: even in meetings and in every relation of seats.

The powers of a number w with w^size = 1 are the first table; its multiples are the others, until all but 0 sit. The difference
between seats is a power of w times one number, and over all tables and turns it takes every value once.
"""

from __future__ import annotations


def prime_cyclic_round(entrants: int, size: int) -> tuple[tuple[int, ...], ...] | None:
    """One round; `None` for other numbers of entrants."""
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
    power, order = number, 1
    while power != 1:
        power, order = power * number % prime, order + 1
    return order
