"""Makes rounds as even as swaps can make them: entrants of one round change places between its tables.

Two kinds of rounds need it: a part of a cycle, which is not balanced although the cycle is, and the rounds of a
few sizes for which no starter is even.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from math import exp
from random import Random
from typing import Final

from seatwise_server.competition.designs.design_round import DesignRound, least_sum_of_squares

MOST_ROUND_SWAPS: Final = 40_000
ROUND_TEMPERATURE: Final = 0.8
"""The constant temperature of the annealing."""
MATCH_WEIGHT: Final = 4
"""The weight of an uneven number of matches, compared with an uneven number of meetings."""


def even_out_rounds(
    cycles: Iterable[DesignRound], rest: Iterable[DesignRound], entrants: int
) -> tuple[DesignRound, ...]:
    """Return the rounds of `rest`, changed so that they are even together with the rounds of `cycles`."""
    search = _RoundSearch(entrants)
    for tables in cycles:
        search.count_tables(tables)
    for tables in rest:
        search.count_tables(tables)
        search.add_round(tables)
    search.anneal_rounds()
    return search.best_rounds()


class _RoundSearch:
    def __init__(self, entrants: int) -> None:
        self._entrants = entrants
        self._met: Counter[tuple[int, int]] = Counter()
        self._played: Counter[int] = Counter()
        self._rounds: list[list[list[int]]] = []
        """The tables of each round. The last one holds the entrants that sit out."""
        self._chance = Random(1)
        self._cost = self._least = 0
        self._undo: list[tuple[list[list[int]], tuple[list[int], int], tuple[list[int], int]]] = []
        """The swaps since the best rounds, the last one last."""

    def count_tables(self, tables: DesignRound) -> None:
        """Count a round that is played in any case."""
        for table in tables:
            self._played.update(table)
            for one, other in combinations(table, 2):
                self._met[one, other] += 1
                self._met[other, one] += 1

    def add_round(self, tables: DesignRound) -> None:
        """Add a round that the search may change. It must be counted too."""
        seated = {each for table in tables for each in table}
        out = [each for each in range(self._entrants) if each not in seated]
        self._rounds.append([*map(list, tables), out])

    def anneal_rounds(self) -> None:
        """Swap two entrants of a round at a time, and undo a swap that makes the rounds too much worse."""
        if not self._rounds:
            return
        chance, enough = self._chance.random, self._lowest_cost()
        for _ in range(MOST_ROUND_SWAPS):
            if self._least <= enough:
                return
            tables = self._rounds[int(chance() * len(self._rounds))]
            here, there = self._random_place(tables), self._random_place(tables)
            if here[0] is there[0]:
                continue
            more = self._swap_entrants(tables, here, there)
            if more > 0 and chance() >= exp(-more / ROUND_TEMPERATURE):
                self._swap_entrants(tables, here, there)
                continue
            self._undo.append((tables, here, there))
            self._cost += more
            if self._cost < self._least:
                self._least = self._cost
                self._undo.clear()

    def best_rounds(self) -> tuple[DesignRound, ...]:
        """Return the most even rounds that were met."""
        while self._undo:
            tables, here, there = self._undo.pop()
            self._cost += self._swap_entrants(tables, here, there)
        return tuple(tuple(map(tuple, each[:-1])) for each in self._rounds)

    def _lowest_cost(self) -> int:
        """Return the change of the sum of squares at which all counts are as even as whole numbers can be.

        It is 0 or negative.
        """
        pairs = [count for (one, other), count in self._met.items() if one < other]
        played = list(self._played.values())
        now = sum(each * each for each in pairs) + MATCH_WEIGHT * sum(each * each for each in played)
        even = least_sum_of_squares(sum(pairs), self._entrants * (self._entrants - 1) // 2)
        return even + MATCH_WEIGHT * least_sum_of_squares(sum(played), self._entrants) - now

    def _random_place(self, tables: list[list[int]]) -> tuple[list[int], int]:
        """Return a random place of a round, at a table or among those that sit out."""
        at = int(self._chance.random() * self._entrants)
        for table in tables:
            if at < len(table):
                return table, at
            at -= len(table)
        raise AssertionError("every entrant is somewhere")

    def _swap_entrants(
        self, tables: list[list[int]], here: tuple[list[int], int], there: tuple[list[int], int]
    ) -> int:
        """Swap two entrants, and return what that adds to the sum of squares."""
        seated = [place for place in (here, there) if place[0] is not tables[-1]]
        cost = sum(self._leave_table(*place) for place in seated)
        here[0][here[1]], there[0][there[1]] = there[0][there[1]], here[0][here[1]]
        return cost + sum(self._join_table(*place) for place in seated)

    def _leave_table(self, table: list[int], at: int) -> int:
        bot, met = table[at], self._met
        others = [other for other in table if other != bot]
        cost = sum(1 - 2 * met[bot, other] for other in others) + MATCH_WEIGHT * (1 - 2 * self._played[bot])
        self._count_meetings(bot, others, -1)
        return cost

    def _join_table(self, table: list[int], at: int) -> int:
        bot, met = table[at], self._met
        others = [other for other in table if other != bot]
        cost = sum(1 + 2 * met[bot, other] for other in others) + MATCH_WEIGHT * (1 + 2 * self._played[bot])
        self._count_meetings(bot, others, 1)
        return cost

    def _count_meetings(self, bot: int, others: list[int], times: int) -> None:
        for other in others:
            self._met[bot, other] += times
            self._met[other, bot] += times
        self._played[bot] += times
