"""Chooses the seat order of each table of a starter, so that every difference is equally frequent at every distance."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import exp
from random import Random
from typing import Final

from seatwise_server.competition.designs.design_round import DesignRound, NumberedTable

ORDER_SWEEPS: Final = 200
"""How often every table's order is drawn again."""


def balance_seat_order(starters: tuple[DesignRound, ...], modulus: int) -> tuple[DesignRound, ...]:
    """Return the same tables in the most even order that the search finds. Its seed is fixed, so the result never varies."""
    search = _SeatOrderSearch([list(starter) for starter in starters], modulus)
    search.anneal_orders()
    return search.best


class _SeatOrderSearch:
    def __init__(self, starters: list[list[NumberedTable]], modulus: int) -> None:
        self._starters = starters
        self._modulus = modulus
        self._chance = Random(1)
        self._counts: Counter[tuple[int, int]] = Counter()
        for table in (table for starter in starters for table in starter):
            self._counts.update(self._distance_differences(table))
        self.best, self._least = self._copy_starters(), self._sum_of_squares()

    def _copy_starters(self) -> tuple[DesignRound, ...]:
        return tuple(map(tuple, self._starters))

    def _sum_of_squares(self) -> int:
        return sum(count * count for count in self._counts.values())

    def anneal_orders(self) -> None:
        """Draw the order of each table in turn, again and again, and keep the most even state of all."""
        for sweep in range(ORDER_SWEEPS):
            for starter in self._starters:
                for place, table in enumerate(starter):
                    starter[place] = self._draw_order(table, 0.1 + 2.0 * (1 - sweep / ORDER_SWEEPS))
            if (squares := self._sum_of_squares()) < self._least:
                self.best, self._least = self._copy_starters(), squares

    def _draw_order(self, table: NumberedTable, temperature: float) -> NumberedTable:
        self._counts.subtract(self._distance_differences(table))
        orders = [(table[0], *others) for others in permutations(table[1:])]
        costs = [sum(self._counts[cell] for cell in self._distance_differences(order)) for order in orders]
        weights = [exp((min(costs) - cost) / temperature) for cost in costs]
        chosen = self._chance.choices(orders, weights)[0]
        self._counts.update(self._distance_differences(chosen))
        return chosen

    def _distance_differences(self, table: NumberedTable) -> list[tuple[int, int]]:
        """Return (distance in seats, difference of numbers) from every seat. The fixed entrant has none."""
        size = len(table)
        return [
            (by, (table[(here + by) % size] - table[here]) % self._modulus)
            for here in range(size)
            for by in range(1, size)
            if self._modulus not in (table[here], table[(here + by) % size])
        ]
