"""Seats the bots of tables: each sits equally often at every seat, and at every distance from each other bot.

The order round the table decides the distances, and its starting point decides the seats. So the search chooses
first the one and then the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import exp
from random import Random
from typing import Any, Final, TypeVar

from seatwise_server.competition.numeric.linalg import add_up

SEATING_SWEEPS: Final = 100
"""How often every table is drawn again."""
FIRST_TEMPERATURE: Final = 0.5
"""The temperature at the start of the annealing. It is low, so that the search keeps most of what is even at the start."""
LAST_TEMPERATURE: Final = 0.15

Seatable = TypeVar("Seatable", bound=Hashable)
"""A bot's name, or an entrant's number."""
BotsBySeat = tuple[str, ...]
"""The names of the bots at one table, by seat."""
SeatedTable = TypeVar("SeatedTable", bound=tuple[Hashable, ...])


class SeatingCounts(ABC):
    """Counts of something that should happen to all bots equally often."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[Hashable, ...]] = Counter()

    @abstractmethod
    def list_cells(self, bots: Sequence[Any]) -> Iterable[tuple[Hashable, ...]]:
        """Return the keys of all that a table seated like this counts."""

    def add_table(self, bots: Sequence[Any], times: int = 1) -> None:
        """Count a table seated like this. `times=-1` takes it back."""
        for cell in self.list_cells(bots):
            self.counts[cell] += times

    def table_cost(self, bots: Sequence[Any]) -> int:
        """Return half of what this table would add to the sum of squares, but for a constant."""
        return sum(map(self.counts.__getitem__, self.list_cells(bots)))

    def sum_of_squares(self) -> int:
        """Return the sum of the squares of all counts. The lower it is, the more even are the counts."""
        return sum(count * count for count in self.counts.values())


class SeatCounts(SeatingCounts):
    """How often each bot has sat at each seat."""

    def list_cells(self, bots: Sequence[Hashable]) -> Iterable[tuple[Hashable, int]]:
        return zip(bots, range(len(bots)), strict=True)


class DistanceCounts(SeatingCounts):
    """How often each bot has had each other bot at each distance to its left."""

    def list_cells(self, bots: Sequence[Hashable]) -> Iterable[tuple[Hashable, Hashable, int]]:
        size = len(bots)
        return [(bot, bots[(seat + by) % size], by) for seat, bot in enumerate(bots) for by in range(1, size)]

    def table_cost(self, bots: Sequence[Hashable]) -> int:
        """Return half of the sum: each pair counts at two distances, and both counts are equal."""
        return sum(
            self.counts[bot, bots[there], there - here]
            for here, bot in enumerate(bots)
            for there in range(here + 1, len(bots))
        )


class SeatAssigner:
    """Seats tables one by one, each in the best order after all tables before it."""

    def __init__(self, tables: Iterable[Sequence[Hashable]] = ()) -> None:
        self._counts: tuple[SeatingCounts, ...] = (DistanceCounts(), SeatCounts())
        for bots in tables:
            self._count_table(bots)

    def assign_best_seats(self, bots: Sequence[Seatable], chance: Random) -> tuple[Seatable, ...]:
        """Return these bots in an order that was the rarest so far, and count the table. `chance` draws one of equals."""
        orders = list(permutations(bots))
        costs = [self._table_cost(order) for order in orders]
        best = [order for order, cost in zip(orders, costs, strict=True) if cost == min(costs)]
        order = best[int(chance.random() * len(best))]
        self._count_table(order)
        return order

    def is_best_order(self, bots: Sequence[Hashable]) -> bool:
        """Tell whether no other order of these bots was rarer so far, and count the table."""
        is_best = self._table_cost(bots) == min(map(self._table_cost, permutations(bots)))
        self._count_table(bots)
        return is_best

    def _count_table(self, bots: Sequence[Hashable]) -> None:
        for each in self._counts:
            each.add_table(bots)

    def _table_cost(self, bots: Sequence[Hashable]) -> int:
        return sum(each.table_cost(bots) for each in self._counts)


def balance_relations(
    tables: Sequence[BotsBySeat], chance: Random, sweeps: int = SEATING_SWEEPS
) -> list[BotsBySeat]:
    """Return the same tables, each in an order that makes the distances of all bots even."""
    return anneal_orders(tables, DistanceCounts(), orders_around_table, chance, sweeps)


def balance_turns(
    tables: Sequence[BotsBySeat], chance: Random, sweeps: int = SEATING_SWEEPS
) -> list[BotsBySeat]:
    """Return the same tables, each turned so that seats are even. Its order stays as it is."""
    return anneal_orders(tables, SeatCounts(), _turned_orders, chance, sweeps)


def seat_in_turn(tables: Iterable[BotsBySeat]) -> list[BotsBySeat]:
    """Return the same tables, each in the best order and turn after those before it. This is quick and nearly even."""
    relations, seats, seated = DistanceCounts(), SeatCounts(), []
    for bots in tables:
        order = min(orders_around_table(bots), key=relations.table_cost)
        seated.append(min(_turned_orders(order), key=seats.table_cost))
        relations.add_table(order)
        seats.add_table(seated[-1])
    return seated


def orders_around_table(bots: tuple[Seatable, ...]) -> list[tuple[Seatable, ...]]:
    """Return all orders round a table. The first bot stays where it is."""
    return [(bots[0], *others) for others in permutations(bots[1:])]


def _turned_orders(bots: BotsBySeat) -> list[BotsBySeat]:
    """Return all turns of one order: each seat at which it can begin."""
    return [bots[by:] + bots[:by] for by in range(len(bots))]


def anneal_orders(
    tables: Iterable[SeatedTable],
    counts: SeatingCounts,
    orders_of: Callable[[SeatedTable], list[SeatedTable]],
    chance: Random,
    sweeps: int,
    temperatures: tuple[float, float] = (FIRST_TEMPERATURE, LAST_TEMPERATURE),
) -> list[SeatedTable]:
    """Draw the order of each table in turn, again and again, and return the most even tables that were found.

    Orders of a lower cost are likelier, and the lower the temperature, the more so.
    """
    seated = list(tables)
    for bots in seated:
        counts.add_table(bots)
    best, least = list(seated), counts.sum_of_squares()
    first, last = temperatures
    for sweep in range(sweeps):
        temperature = last + (first - last) * (1 - sweep / sweeps)
        for place, bots in enumerate(seated):
            counts.add_table(bots, -1)
            orders = orders_of(bots)
            costs = [counts.table_cost(order) for order in orders]
            weights = [exp((min(costs) - cost) / temperature) for cost in costs]
            seated[place] = chance.choices(orders, weights)[0]
            counts.add_table(seated[place])
        if (squares := counts.sum_of_squares()) < least:
            best, least = list(seated), squares
    return best


# Measures how even a schedule is: the least and the most of each count that should be equal for all, and its mean.


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the most and the mean of a count."""

    subject: str
    """The counted events, in words."""
    least: int
    most: int
    ideal: float
    """The mean count."""
    mean_deviation: float
    """The mean distance of the counts from their mean."""

    @property
    def is_even(self) -> bool:
        """Whether no whole numbers with this sum are more even."""
        return self.most - self.least <= (not self.ideal.is_integer())

    def __str__(self) -> str:
        times = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
        even = "as even as can be" if self.is_even else f"{self.mean_deviation:.2f} off on average"
        return f"{self.subject}: {times} (mean {self.ideal:.2f}; {even})"


def measure_balance(entrants: Sequence[str], tables: Sequence[Sequence[str]]) -> tuple[Spread, ...]:
    """Return spreads of matches by entrant, meetings by pair, the same by seat distance, and matches by entrant and seat.

    `tables` has the bots of each match by seat.
    """
    size = max(map(len, tables), default=2)
    places, relations = SeatCounts(), DistanceCounts()
    for bots in tables:
        places.add_table(bots)
        relations.add_table(bots)
    matches = Counter(bot for bots in tables for bot in bots)
    meetings = Counter(frozenset(pair) for bots in tables for pair in combinations(bots, 2))
    pairs = list(combinations(entrants, 2))
    return (
        _measure_spread("matches of each", [matches[bot] for bot in entrants]),
        _measure_spread("meetings of each pair", [meetings[frozenset(pair)] for pair in pairs]),
        _measure_spread(
            "meetings of each pair at each distance",
            [
                relations.counts[one, other, by]
                for one, other in permutations(entrants, 2)
                for by in range(1, size)
            ],
        ),
        _measure_spread(
            "matches of each at each seat", [places.counts[bot, at] for bot in entrants for at in range(size)]
        ),
    )


def _measure_spread(what: str, counts: Iterable[int]) -> Spread:
    values = list(counts) or [0]
    ideal = add_up(values) / len(values)
    return Spread(
        what, min(values), max(values), ideal, add_up(abs(each - ideal) for each in values) / len(values)
    )
