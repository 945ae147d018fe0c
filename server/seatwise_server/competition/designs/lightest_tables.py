"""Share entrants out over tables of one size so that the sum of the weights of all pairs at a table is as small as can be.

This is a minimum-weight partition into cliques. For tables of two it is a perfect matching; from three on it is NP-hard. Three
steps follow each other, each bounded by a count and never by a time, so that the result is the same on every machine:

1. Descent: while an exchange of two entrants makes the sum smaller, make it.
2. Kicks: exchange a few entrants at random, descend again, and keep the result if it is no worse.
3. Branch and bound over the tables, from the first free entrant on. If it ends within its nodes, the sum is the least of all.

No exchange of two entrants makes the result better (`find_better_exchange`). Anyone can check that without these steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import exp
from random import Random
from typing import Final

from seatwise_server.competition.designs.cyclic_design import DesignRound, least_sum_of_squares

PairWeights = Sequence[Sequence[int]]
"""The weight of each pair of entrants: symmetric whole numbers, 0 or more."""
TablesOfNumbers = list[list[int]]

KICK_WORK: Final = 60_000
"""n^2 for each kick with n entrants, in sum. So the more entrants, the fewer kicks."""
BRANCH_NODES: Final = 200_000
"""Tables that the branch and bound weighs."""
KICKED_PLACES: Final = 3
"""Exchanges in one kick, at most."""
MOST_BRANCHED_ENTRANTS: Final = 24
"""For more entrants a branch and bound of so few nodes proves nothing."""


def find_lightest_tables(
    weights: PairWeights, start: Sequence[Sequence[int]], seed: str, bounds: SearchBounds | None = None
) -> TablesOfNumbers:
    """Return tables with the least sum of weights that the search finds, from these tables on."""
    bounds = bounds or SearchBounds()
    search = _ExchangeSearch(weights, start)
    search.descend()
    floor = least_weight_bound(weights, search.tables)
    search.kick_repeatedly(Random(seed), floor, bounds.kick_work // len(search.entrants) ** 2)
    tables, weight = search.tables, search.weight
    if weight > floor and len(search.entrants) <= MOST_BRANCHED_ENTRANTS:
        tables = _BranchAndBound(weights, tables, weight, bounds.nodes).find_tables()
    return tables


def tables_weight(weights: PairWeights, tables: Iterable[Sequence[int]]) -> int:
    """Return the sum of the weights of all pairs at a table."""
    return sum(weights[one][other] for table in tables for one, other in combinations(table, 2))


def least_weight_bound(weights: PairWeights, tables: Sequence[Sequence[int]]) -> int:
    """Return a number that no tables of these entrants can be below: each entrant's lightest pairs, half of their sum."""
    entrants = [entrant for table in tables for entrant in table]
    return -(-sum(_lightest_pairs(weights, entrants, len(tables[0])).values()) // 2)


def find_better_exchange(weights: PairWeights, tables: Sequence[Sequence[int]]) -> tuple[int, int] | None:
    """Return two entrants whose exchange makes the sum of weights smaller. `None` if there are none."""
    search = _ExchangeSearch(weights, tables)
    return next(((one, other) for one in search.entrants if (other := search.best_partner(one)) >= 0), None)


def _lightest_pairs(weights: PairWeights, entrants: Sequence[int], size: int) -> dict[int, int]:
    """Return for each entrant the sum of its `size` - 1 lightest pairs."""
    return {
        one: sum(sorted(weights[one][other] for other in entrants if other != one)[: size - 1])
        for one in entrants
    }


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """How much a search may do. Both bounds are counts, so the result does not depend on the machine."""

    kick_work: int = KICK_WORK
    nodes: int = BRANCH_NODES


class _ExchangeSearch:
    """Tables, with the weight of each entrant beside each table."""

    def __init__(self, weights: PairWeights, tables: Sequence[Sequence[int]]) -> None:
        self._weights = weights
        self.tables = [list(table) for table in tables]
        self.entrants = sorted(entrant for table in tables for entrant in table)
        self._table_of = {entrant: at for at, table in enumerate(tables) for entrant in table}
        self._beside = {
            entrant: [sum(map(weights[entrant].__getitem__, table)) for table in tables]
            for entrant in self.entrants
        }
        """By entrant, the sum of its weights with the bots of each table. Its own weight with itself is 0."""
        self.weight = tables_weight(weights, tables)

    def descend(self) -> None:
        """Exchange two entrants while that makes the sum smaller."""
        is_better = True
        while is_better:
            is_better = False
            for one in self.entrants:
                if (other := self.best_partner(one)) >= 0:
                    self._exchange(one, other)
                    is_better = True

    def best_partner(self, one: int) -> int:
        """Return the entrant with which this one is best exchanged. -1 if no exchange makes the sum smaller."""
        here, beside, weights = self._table_of[one], self._beside[one], self._weights[one]
        own = beside[here]
        if not own:  # then the other one has something to gain, and is asked too
            return -1
        best, partner = 0, -1
        for other in self.entrants:
            there, others = self._table_of[other], self._beside[other]
            gain = beside[there] + others[here] - 2 * weights[other] - own - others[there]
            if gain < best and there != here:
                best, partner = gain, other
        return partner

    def kick_repeatedly(self, chance: Random, floor: int, times: int) -> None:
        """Exchange a few entrants at random and descend, so many times. Keep what is no worse."""
        for _ in range(times):
            if self.weight <= floor:
                return
            before = self._copy_state()
            for _ in range(1 + int(chance.random() * KICKED_PLACES)):
                one, other = (self.entrants[int(chance.random() * len(self.entrants))] for _ in range(2))
                if self._table_of[one] != self._table_of[other]:
                    self._exchange(one, other)
            self.descend()
            if self.weight > before[-1]:
                self.tables, self._table_of, self._beside, self.weight = before

    def _copy_state(self) -> tuple[TablesOfNumbers, dict[int, int], dict[int, list[int]], int]:
        beside = {entrant: list(sums) for entrant, sums in self._beside.items()}
        return [list(table) for table in self.tables], dict(self._table_of), beside, self.weight

    def _exchange(self, one: int, other: int) -> None:
        here, there = self._table_of[one], self._table_of[other]
        self.weight -= self._beside[one][here] + self._beside[other][there]
        self._replace(one, here, other)
        self._replace(other, there, one)
        self._table_of[one], self._table_of[other] = there, here
        self.weight += self._beside[one][there] + self._beside[other][here]

    def _replace(self, leaver: int, at: int, joiner: int) -> None:
        table = self.tables[at]
        table[table.index(leaver)] = joiner
        gone, come = self._weights[leaver], self._weights[joiner]
        for entrant, beside in self._beside.items():
            beside[at] += come[entrant] - gone[entrant]


class _BranchAndBound:
    """Opens one table after the other, each with the first entrant that is free."""

    def __init__(self, weights: PairWeights, tables: TablesOfNumbers, weight: int, nodes: int) -> None:
        self._weights = weights
        self._best, self._least = tables, weight
        self._size = len(tables[0])
        self._entrants = sorted(entrant for table in tables for entrant in table)
        self._lightest = _lightest_pairs(weights, self._entrants, self._size)
        self._nodes = nodes

    def find_tables(self) -> TablesOfNumbers:
        """Return the lightest tables: of all, if the nodes suffice."""
        self._fill_tables(self._entrants, [], 0)
        return self._best

    def _fill_tables(self, free: list[int], tables: TablesOfNumbers, weight: int) -> None:
        if not free:
            self._best, self._least = [list(table) for table in tables], weight
            return
        rest = sum(map(self._lightest.__getitem__, free))
        for added, table in self._possible_tables(free, 2 * (self._least - weight) - rest):
            if self._nodes <= 0:
                return
            left = [entrant for entrant in free if entrant not in table]
            bound = weight + added - (-sum(map(self._lightest.__getitem__, left)) // 2)
            if bound < self._least:
                self._fill_tables(left, [*tables, list(table)], weight + added)

    def _possible_tables(self, free: list[int], slack: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Return the tables of the first free entrant, the lightest first. `slack` is twice the weight that is left over."""
        first, others = free[0], free[1:]
        weights = self._weights
        found = []
        for company in combinations(others, self._size - 1):
            self._nodes -= 1
            table = (first, *company)
            weight = sum(weights[one][other] for one, other in combinations(table, 2))
            if 2 * weight - sum(map(self._lightest.__getitem__, table)) < slack:
                found.append((weight, table))
        found.sort()
        return iter(found)


# Makes rounds as even as swaps can make them: entrants of one round change places between its tables.

MOST_ROUND_SWAPS: Final = 40_000
ROUND_TEMPERATURE: Final = 0.8
"""The constant temperature of the annealing."""
MATCH_WEIGHT: Final = 4
"""The weight of an uneven number of matches, compared with an uneven number of meetings."""
Place = tuple[list[int], int]
"""A table, or the entrants that sit out, and a seat there."""


def even_out_rounds(
    cycles: Sequence[DesignRound], rest: Sequence[DesignRound], entrants: int
) -> tuple[DesignRound, ...]:
    """Return the rounds of `rest`, changed so that they are even together with the rounds of `cycles`."""
    search = _RoundSearch(cycles, rest, entrants)
    search.anneal_rounds()
    return search.best_rounds()


class _RoundSearch:
    def __init__(self, cycles: Sequence[DesignRound], rest: Sequence[DesignRound], entrants: int) -> None:
        tables = [table for each in (*cycles, *rest) for table in each]
        self._entrants = entrants
        self._met = Counter(pair for table in tables for pair in permutations(table, 2))
        self._played = Counter(entrant for table in tables for entrant in table)
        self._rounds = [[*map(list, each), _list_out(each, entrants)] for each in rest]
        """The tables of each round. The last one holds the entrants that sit out."""
        self._chance = Random(1)
        self._cost = self._least = 0
        self._undo: list[tuple[TablesOfNumbers, Place, Place]] = []
        """The swaps since the best rounds, the last one last."""

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
        """Return the change of the sum of squares at which all counts are as even as whole numbers can be. It is 0 or negative."""
        pairs = [count for (one, other), count in self._met.items() if one < other]
        played = list(self._played.values())
        now = sum(each * each for each in pairs) + MATCH_WEIGHT * sum(each * each for each in played)
        even = least_sum_of_squares(sum(pairs), self._entrants * (self._entrants - 1) // 2)
        return even + MATCH_WEIGHT * least_sum_of_squares(sum(played), self._entrants) - now

    def _random_place(self, tables: TablesOfNumbers) -> Place:
        at = int(self._chance.random() * self._entrants)
        for table in tables:
            if at < len(table):
                return table, at
            at -= len(table)
        raise AssertionError("every entrant is somewhere")

    def _swap_entrants(self, tables: TablesOfNumbers, here: Place, there: Place) -> int:
        """Swap two entrants, and return what that adds to the sum of squares."""
        seated = [place for place in (here, there) if place[0] is not tables[-1]]
        cost = sum(self._count_place(*place, -1) for place in seated)
        here[0][here[1]], there[0][there[1]] = there[0][there[1]], here[0][here[1]]
        return cost + sum(self._count_place(*place, 1) for place in seated)

    def _count_place(self, table: list[int], at: int, times: int) -> int:
        """Count the entrant's match at this table, or take it back. Return what that adds to the sum of squares."""
        entrant, met, played = table[at], self._met, self._played
        cost = MATCH_WEIGHT * (1 + 2 * times * played[entrant])
        for other in table:
            if other != entrant:
                cost += 1 + 2 * times * met[entrant, other]
                met[entrant, other] += times
                met[other, entrant] += times
        played[entrant] += times
        return cost


def _list_out(tables: DesignRound, entrants: int) -> list[int]:
    seated = {entrant for table in tables for entrant in table}
    return [entrant for entrant in range(entrants) if entrant not in seated]
