"""Cyclic designs: one round (the starter) from which all others follow, because each round adds 1 to every number.

The numbers are residues modulo m. If the number of entrants fills all tables, the last entrant is a fixed point outside of the
residues ("infinity"), and m is one less. Two residues at a table meet, over the m rounds, as all pairs with that difference. So
the rounds are balanced if the starter has every difference equally often. Simulated annealing finds swaps that make it so. Its
seeds are fixed, so there is one starter for each size.

"Starter" is a term of combinatorial design theory; see Colbourn and Dinitz, "Handbook of Combinatorial Designs", chapter VI.55.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import exp, gcd
from random import Random
from typing import Final

from seatwise_server.competition.designs.seat_balance import SeatingCounts, anneal_orders, orders_around_table

# A starter for a prime number of entrants of which one sits out: even in meetings and in every distance of seats.


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


# The parts of designs: rounds of tables of entrant numbers.

NumberedTable = tuple[int, ...]
"""The numbers of the entrants at one table, by seat."""
DesignRound = tuple[NumberedTable, ...]
"""The tables of one round. An entrant whose number is at no table sits out."""


def least_sum_of_squares(total: int, cells: int) -> int:
    """Return the least sum of squares of `cells` whole numbers whose sum is `total`: the most even way to share it out."""
    each, more = divmod(total, max(cells, 1))
    return more * (each + 1) ** 2 + (cells - more) * each**2


# Chooses the seat order of each table of a starter, so that every difference is equally frequent at every distance.

ORDER_SWEEPS: Final = 200
"""How often every table's order is drawn again."""


def balance_seat_order(starters: tuple[DesignRound, ...], modulus: int) -> tuple[DesignRound, ...]:
    """Return the same tables in the most even order that the search finds. Its seed is fixed, so the result never varies."""
    tables = (table for starter in starters for table in starter)
    counts = _DifferenceCounts(modulus)
    ordered = iter(anneal_orders(tables, counts, orders_around_table, Random(1), ORDER_SWEEPS, (2.1, 0.1)))
    return tuple(tuple(next(ordered) for _ in starter) for starter in starters)


class _DifferenceCounts(SeatingCounts):
    """How often each difference of two numbers occurs at each distance of seats. The fixed entrant has none."""

    def __init__(self, modulus: int) -> None:
        super().__init__()
        self._modulus = modulus

    def list_cells(self, bots: Sequence[int]) -> Iterable[tuple[int, int]]:
        size = len(bots)
        return [
            (by, (bots[(here + by) % size] - bots[here]) % self._modulus)
            for here in range(size)
            for by in range(1, size)
            if self._modulus not in (bots[here], bots[(here + by) % size])
        ]


MOST_STARTER_SWAPS: Final = 40_000
"""The most swaps of a search. All of them take half a second, which happens where the optimum cannot be reached."""
STARTER_TEMPERATURE: Final = 1.0
"""The constant temperature of the annealing."""
STARTER_SEEDS: Final = (1, 9, 7)
"""Seeds that are tried in turn. With them the search ends early for many numbers of entrants."""


@lru_cache(maxsize=32)
def cyclic_rounds(entrants: int, size: int, cycles: int) -> tuple[DesignRound, ...]:
    """Return the rounds of so many cycles, for tables of this size. Each entrant plays at most once in a round."""
    modulus = cycle_length(entrants, size)
    starters = _find_starters(entrants, size, min(cycles, _starters_needed(entrants, size)))
    return tuple(
        tuple(tuple(_shift_number(number, by, modulus) for number in table) for table in starter)
        for cycle in range(cycles)
        for starter in (starters[cycle % len(starters)],)
        for by in range(modulus)
    )


def cycle_length(entrants: int, size: int) -> int:
    """Return the number of rounds in a cycle."""
    return entrants - 1 if entrants % size == 0 else entrants


def _starters_needed(entrants: int, size: int) -> int:
    """Return how many different starters let every pair meet equally often: at most four, because more take too long."""
    seated = entrants - entrants % size
    meetings = seated * (size - 1)
    return min(4, (entrants - 1) // gcd(entrants - 1, meetings))


def _shift_number(number: int, by: int, modulus: int) -> int:
    return number if number == modulus else (number + by) % modulus


@lru_cache(maxsize=32)
def _find_starters(entrants: int, size: int, count: int) -> tuple[DesignRound, ...]:
    known = prime_cyclic_round(entrants, size)
    if known:
        return (known,)
    found = _StarterSearch(entrants, size, count, STARTER_SEEDS[0])
    for seed in STARTER_SEEDS:
        search = _StarterSearch(entrants, size, count, seed)
        search.anneal_starters(MOST_STARTER_SWAPS)
        if search.best_cost < found.best_cost:
            found = search
        if found.is_even():
            break
    return balance_seat_order(found.best, found.modulus)


@dataclass
class _StarterSearch:
    """Swaps two entrants at a time, and undoes a swap that makes the rounds too much worse."""

    entrants: int
    size: int
    count: int
    seed: int

    def __post_init__(self) -> None:
        self.modulus = cycle_length(self.entrants, self.size)
        self.seated = self.entrants - self.entrants % self.size
        self._chance = Random(self.seed)
        self._cells = [0] * self.modulus
        """How often each difference occurs."""
        self._orders = [self._initial_order(number) for number in range(self.count)]
        """For each starter, the entrants in the order of the tables. The last ones sit out."""
        self._cost = 0
        for order in self._orders:
            for first in range(0, self.seated, self.size):
                self._count_differences(order[first : first + self.size], 1)
        self.best, self.best_cost = self._cut_into_tables(), self._cost

    def _initial_order(self, number: int) -> list[int]:
        """Put x beside -x, which solves tables of two. Shuffle for larger tables and for all starters but the first."""
        half = [each for x in range(1, (self.modulus + 1) // 2) for each in (x, self.modulus - x)]
        order = half + [each for each in range(self.entrants) if each not in set(half)]
        if self.size > 2 or number:
            self._chance.shuffle(order)
        return order

    def _cut_into_tables(self) -> tuple[DesignRound, ...]:
        starts = range(0, self.seated, self.size)
        return tuple(tuple(tuple(order[at : at + self.size]) for at in starts) for order in self._orders)

    def anneal_starters(self, steps: int) -> None:
        """Try `steps` swaps, or stop once no swap can make the rounds more even."""
        least, chance = self._least_cost(), self._chance.random
        for _ in range(steps):
            if self.best_cost <= least:
                return
            order = self._orders[int(chance() * self.count)]
            here, there = int(chance() * self.seated), int(chance() * self.entrants)
            before = self._cost
            self._swap_entrants(order, here, there)
            if self._cost > before and chance() >= exp((before - self._cost) / STARTER_TEMPERATURE):
                self._swap_entrants(order, here, there)
            elif self._cost < self.best_cost:
                self.best, self.best_cost = self._cut_into_tables(), self._cost

    def is_even(self) -> bool:
        """Return whether the rounds are as even as whole numbers allow."""
        return self.best_cost <= self._least_cost()

    def _least_cost(self) -> int:
        return least_sum_of_squares(sum(self._cells), self.modulus - 1)

    def _swap_entrants(self, order: list[int], here: int, there: int) -> None:
        starts = {each - each % self.size for each in (here, there) if each < self.seated}
        for at in starts:
            self._count_differences(order[at : at + self.size], -1)
        order[here], order[there] = order[there], order[here]
        for at in starts:
            self._count_differences(order[at : at + self.size], 1)

    def _count_differences(self, table: list[int], sign: int) -> None:
        cells, modulus = self._cells, self.modulus
        for one, other in combinations(table, 2):
            if modulus not in (one, other):
                for cell in ((one - other) % modulus, (other - one) % modulus):
                    self._cost += 2 * sign * cells[cell] + 1
                    cells[cell] += sign


# Tables of four for 4, 8, 16, 32 or 64 entrants, so that every pair meets exactly three times in entrants - 1 rounds.

PRIMITIVE_POLYNOMIALS: Final = {4: 0b111, 8: 0b1011, 16: 0b10011, 32: 0b100101, 64: 0b1000011}
"""By number of entrants, as bits: a polynomial modulo which repeated doubling runs through all numbers but 0."""


def affine_plane_rounds(entrants: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return all rounds. Raises `KeyError` for other numbers of entrants."""
    rounds, direction = [], 1
    for _ in range(entrants - 1):
        # Multiply by the generator: double, and reduce by the primitive polynomial.
        twice = direction << 1
        beside = twice ^ PRIMITIVE_POLYNOMIALS[entrants] if twice & entrants else twice
        rounds.append(_parallel_planes(entrants, direction, beside))
        direction = beside
    return tuple(rounds)


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
