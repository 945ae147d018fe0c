"""Cyclic designs: one round (the starter) from which all others follow, because each round adds 1 to every number.

The numbers are residues modulo m. If the number of entrants fills all tables, the last entrant is a fixed point outside of
the residues ("infinity"), and m is one less. Two residues at a table meet, over the m rounds, as all pairs with that
difference. So the rounds are balanced if the starter has every difference equally often. Simulated annealing finds swaps
that make it so. Its seeds are fixed, so there is one starter for each size.

"Starter" is a term of combinatorial design theory; see Colbourn and Dinitz, "Handbook of Combinatorial Designs", chapter
VI.55.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import exp, gcd
from random import Random
from typing import Final

from seatwise_server.competition.designs.design_round import DesignRound, least_sum_of_squares
from seatwise_server.competition.designs.prime_cyclic_design import prime_cyclic_round
from seatwise_server.competition.designs.seat_order import balance_seat_order

MOST_STARTER_SWAPS: Final = 40_000
"""The most swaps of a search. All of them take half a second, which happens where the optimum cannot be reached."""
STARTER_TEMPERATURE: Final = 1.0
"""The constant temperature of the annealing."""
STARTER_SEEDS: Final = (1, 9, 7)
"""Seeds that are tried in turn. With them the search ends early for many numbers of entrants."""


@lru_cache(maxsize=32)
def cyclic_rounds(entrants: int, size: int, cycles: int) -> tuple[DesignRound, ...]:
    """Return the rounds of `cycles` cycles for tables of this size.

    Each entrant plays at most once in a round. An entrant that is at no table sits out.
    """
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
