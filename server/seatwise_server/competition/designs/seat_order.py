"""The order round each table of a starter, so that every difference occurs equally often at every distance of seats."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import exp
from random import Random
from typing import Final

SWEEPS: Final = 200

Table = tuple[int, ...]


def oriented(starters: tuple[tuple[Table, ...], ...], modulus: int) -> tuple[tuple[Table, ...], ...]:
    """The same tables, the differences between neighbours as even as a search of always the same way finds."""
    search = _Search([list(starter) for starter in starters], modulus)
    search.anneal()
    return search.best


class _Search:
    def __init__(self, starters: list[list[Table]], modulus: int) -> None:
        self._starters = starters
        self._modulus = modulus
        self._chance = Random(1)
        self._counts: Counter[tuple[int, int]] = Counter()
        for table in (table for starter in starters for table in starter):
            self._counts.update(self._cells(table))
        self.best, self._least = self._now(), self._squares()

    def _now(self) -> tuple[tuple[Table, ...], ...]:
        return tuple(map(tuple, self._starters))

    def _squares(self) -> int:
        return sum(count * count for count in self._counts.values())

    def anneal(self) -> None:
        """Draws one table's order after the other anew, and keeps the best of all."""
        for sweep in range(SWEEPS):
            for starter in self._starters:
                for place, table in enumerate(starter):
                    starter[place] = self._drawn(table, 0.1 + 2.0 * (1 - sweep / SWEEPS))
            if (squares := self._squares()) < self._least:
                self.best, self._least = self._now(), squares

    def _drawn(self, table: Table, heat: float) -> Table:
        self._counts.subtract(self._cells(table))
        orders = [(table[0], *others) for others in permutations(table[1:])]
        costs = [sum(self._counts[cell] for cell in self._cells(order)) for order in orders]
        weights = [exp((min(costs) - cost) / heat) for cost in costs]
        chosen = self._chance.choices(orders, weights)[0]
        self._counts.update(self._cells(chosen))
        return chosen

    def _cells(self, table: Table) -> list[tuple[int, int]]:
        """(seats apart, difference), seen from everybody; who stays where it is in all rounds has none."""
        size = len(table)
        return [
            (by, (table[(here + by) % size] - table[here]) % self._modulus)
            for here in range(size)
            for by in range(1, size)
            if self._modulus not in (table[here], table[(here + by) % size])
        ]
