"""Seat the bots of a table so that each sits at every seat, and at every distance from each other bot, equally often.

The order round the table decides the distances, and its starting point decides the seats. So the search chooses one after
the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from math import exp
from random import Random
from typing import Final, Protocol

SEATING_SWEEPS: Final = 100
"""Every table is drawn again so many times."""
FIRST_TEMPERATURE: Final = 0.5
"""Of the annealing. It is low, so that the search keeps most of what is even at the start."""
LAST_TEMPERATURE: Final = 0.15

BotsBySeat = tuple[str, ...]
"""The names of the bots at one table, by seat."""


class SeatingCounts(Protocol):
    """Counts of something that should happen to all bots equally often."""

    def add_table(self, bots: Sequence[str], times: int = 1) -> None:
        """Count a table seated like this. `times=-1` takes it back."""

    def table_cost(self, bots: Sequence[str]) -> int:
        """Return half of what this table would add to the sum of squares, but for a constant."""

    def sum_of_squares(self) -> int:
        """Return the sum of the squares of all counts. The lower it is, the more even are the counts."""


class SeatCounts:
    """How often each bot has sat at each seat."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()

    def add_table(self, bots: Sequence[str], times: int = 1) -> None:
        for seat, bot in enumerate(bots):
            self.counts[bot, seat] += times

    def table_cost(self, bots: Sequence[str]) -> int:
        return sum(self.counts[bot, seat] for seat, bot in enumerate(bots))

    def sum_of_squares(self) -> int:
        return sum(count * count for count in self.counts.values())


class DistanceCounts:
    """How often each bot has had each other bot so many seats to its left."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()

    def add_table(self, bots: Sequence[str], times: int = 1) -> None:
        for seat, bot in enumerate(bots):
            for by in range(1, len(bots)):
                self.counts[bot, bots[(seat + by) % len(bots)], by] += times

    def table_cost(self, bots: Sequence[str]) -> int:
        return sum(
            self.counts[bot, bots[there], there - here]
            for here, bot in enumerate(bots)
            for there in range(here + 1, len(bots))
        )

    def sum_of_squares(self) -> int:
        return sum(count * count for count in self.counts.values())


class SeatAssigner:
    """Seats tables one by one, each in the best order after all tables before it."""

    def __init__(self, tables: Iterable[Sequence[str]] = ()) -> None:
        self._counts: tuple[SeatingCounts, ...] = (DistanceCounts(), SeatCounts())
        for bots in tables:
            self._count_table(bots)

    def assign_seats(self, bots: Sequence[str], chance: Random) -> BotsBySeat:
        """Return these bots by seat, and count the table. `chance` decides between orders that are equally good."""
        order = _draw_choice(list(permutations(bots)), self._table_cost, 0.01, chance)
        self._count_table(order)
        return order

    def _count_table(self, bots: Sequence[str]) -> None:
        for each in self._counts:
            each.add_table(bots)

    def _table_cost(self, bots: BotsBySeat) -> int:
        return sum(each.table_cost(bots) for each in self._counts)


def balance_seats(tables: Sequence[BotsBySeat], chance: Random) -> list[BotsBySeat]:
    """Return the same tables, seated so that seats and distances are even over all of them together."""
    ordered = _anneal_seats(tables, DistanceCounts(), _orders_around_table, chance)
    return _anneal_seats(ordered, SeatCounts(), _turned_orders, chance)


def _orders_around_table(bots: BotsBySeat) -> list[BotsBySeat]:
    """Return all orders round a table. The first bot stays where it is."""
    return [(bots[0], *others) for others in permutations(bots[1:])]


def _turned_orders(bots: BotsBySeat) -> list[BotsBySeat]:
    """Return all turns of one order: each seat at which it can begin."""
    return [bots[by:] + bots[:by] for by in range(len(bots))]


def _anneal_seats(
    tables: Sequence[BotsBySeat],
    counts: SeatingCounts,
    choices: Callable[[BotsBySeat], list[BotsBySeat]],
    chance: Random,
) -> list[BotsBySeat]:
    """Draw the order of one table after the other, and return the most even tables that were met."""
    seated = list(tables)
    for bots in seated:
        counts.add_table(bots)
    best, least = list(seated), counts.sum_of_squares()
    for sweep in range(SEATING_SWEEPS):
        temperature = LAST_TEMPERATURE + (FIRST_TEMPERATURE - LAST_TEMPERATURE) * (1 - sweep / SEATING_SWEEPS)
        for place, bots in enumerate(seated):
            counts.add_table(bots, -1)
            seated[place] = _draw_choice(choices(bots), counts.table_cost, temperature, chance)
            counts.add_table(seated[place])
        if (squares := counts.sum_of_squares()) < least:
            best, least = list(seated), squares
    return best


def _draw_choice(
    choices: list[BotsBySeat], cost: Callable[[BotsBySeat], int], temperature: float, chance: Random
) -> BotsBySeat:
    """Draw one of the choices. Lower costs are likelier, and the lower the temperature, the more so."""
    costs = [cost(each) for each in choices]
    weights = [exp((min(costs) - each) / temperature) for each in costs]
    return chance.choices(choices, weights)[0]
