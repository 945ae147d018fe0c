"""Who sits where at a table, so that everybody sits everywhere, and in every relation to everybody, equally often.

The order around the table decides who sits how far from whom, and where it begins decides who has which seat: the two are
chosen one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from math import exp
from random import Random
from typing import Final, Protocol

SEATING_SWEEPS: Final = 100
FIRST_TEMPERATURE: Final = 0.5
LAST_TEMPERATURE: Final = 0.15
"""At the start and at the end of the search: low, so that it keeps what is even from the start."""

BotsBySeat = tuple[str, ...]


class SeatingCounts(Protocol):
    """Something that should have happened to all equally often."""

    def add_table(self, bots: Sequence[str], times: int = 1) -> None:
        """They have sat so; -1 takes it back."""

    def table_cost(self, bots: Sequence[str]) -> int:
        """Half of what sitting so would add to the sum of squares, but for a constant."""

    def sum_of_squares(self) -> int:
        """The sum of all squares: the more even, the less."""


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
    """How often each bot has had each other one so many seats to its left."""

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
    """Seats tables one by one, each in the best way after all before it."""

    def __init__(self, tables: Iterable[Sequence[str]] = ()) -> None:
        self._counts: tuple[SeatingCounts, ...] = (DistanceCounts(), SeatCounts())
        for bots in tables:
            self._count_table(bots)

    def assign_seats(self, bots: Sequence[str], chance: Random) -> BotsBySeat:
        """They sit so from now on."""
        order = _draw_choice(list(permutations(bots)), self._table_cost, 0.01, chance)
        self._count_table(order)
        return order

    def _count_table(self, bots: Sequence[str]) -> None:
        for each in self._counts:
            each.add_table(bots)

    def _table_cost(self, bots: BotsBySeat) -> int:
        return sum(each.table_cost(bots) for each in self._counts)


def balance_seats(tables: Sequence[BotsBySeat], chance: Random) -> list[BotsBySeat]:
    """The same tables, with seats chosen for all of them together."""
    ordered = _anneal_seats(tables, DistanceCounts(), _orders_around_table, chance)
    return _anneal_seats(ordered, SeatCounts(), _turned_orders, chance)


def _orders_around_table(bots: BotsBySeat) -> list[BotsBySeat]:
    """All orders around a table."""
    return [(bots[0], *others) for others in permutations(bots[1:])]


def _turned_orders(bots: BotsBySeat) -> list[BotsBySeat]:
    """All seats at which the same order can begin."""
    return [bots[by:] + bots[:by] for by in range(len(bots))]


def _anneal_seats(
    tables: Sequence[BotsBySeat],
    counts: SeatingCounts,
    choices: Callable[[BotsBySeat], list[BotsBySeat]],
    chance: Random,
) -> list[BotsBySeat]:
    seated = list(tables)
    for bots in seated:
        counts.add_table(bots)
    best, least = list(seated), counts.sum_of_squares()
    for sweep in range(SEATING_SWEEPS):
        heat = LAST_TEMPERATURE + (FIRST_TEMPERATURE - LAST_TEMPERATURE) * (1 - sweep / SEATING_SWEEPS)
        for place, bots in enumerate(seated):
            counts.add_table(bots, -1)
            seated[place] = _draw_choice(choices(bots), counts.table_cost, heat, chance)
            counts.add_table(seated[place])
        if (squares := counts.sum_of_squares()) < least:
            best, least = list(seated), squares
    return best


def _draw_choice(
    choices: list[BotsBySeat], cost: Callable[[BotsBySeat], int], heat: float, chance: Random
) -> BotsBySeat:
    costs = [cost(each) for each in choices]
    weights = [exp((min(costs) - each) / heat) for each in costs]
    return chance.choices(choices, weights)[0]
