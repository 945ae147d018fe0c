"""Even out the seats of a schedule: every bot sits at any two seats equally often, or once more at one of them.

This is an equitable edge colouring of the bipartite graph of bots and tables, whose colours are the seats. It exists for every
schedule (D. de Werra, 1971). For two seats, take each table as an arrow from the bot at the one to the bot at the other. A bot
that has too many arrows out is the beginning of a path of arrows to a bot that has too many in. Turning the arrows of the
path round brings both nearer to even and changes no other bot.

Then the relations of seats are made as even as they can be while the seats stay even.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from itertools import permutations
from random import Random
from typing import Final

from seatwise_server.competition.designs.seat_balance import (
    SEATING_SWEEPS,
    BotsBySeat,
    DistanceCounts,
    SeatCounts,
    balance_relations,
    balance_turns,
    seat_in_turn,
)

MOST_SEATED_TABLES: Final = 200_000
"""The search draws so many tables in all its sweeps together. A larger plan is seated in turn."""
SEATING_ATTEMPTS: Final = 8
"""So many seatings of a small plan are tried."""
MOST_ATTEMPTED_TABLES: Final = 400
"""Tables of all attempts together."""
MOST_RELATION_SWEEPS: Final = 20
"""The tables are gone through so many times at most, to make relations even."""


def seat_evenly(
    tables: Sequence[BotsBySeat], chance: Random, *, only_relations: bool = False
) -> list[BotsBySeat]:
    """Return the same tables with even seats, unless `only_relations` count, and then the most even relations that are found."""
    sweeps = min(SEATING_SWEEPS, MOST_SEATED_TABLES // max(1, len(tables)))
    start = seat_in_turn(tables) if sweeps < SEATING_SWEEPS else tables
    if only_relations:
        return balance_relations(start, chance, sweeps)
    if not sweeps:
        return even_out_seats(start, sweeps=0)
    attempts = max(1, min(SEATING_ATTEMPTS, MOST_ATTEMPTED_TABLES // max(1, len(tables))))
    found: list[tuple[int, list[BotsBySeat]]] = []
    for _ in range(attempts):
        ordered = balance_relations(start, chance, sweeps)
        seated = even_out_seats(balance_turns(ordered, chance, sweeps))
        found.append((_relation_squares(seated), seated))
        if found[-1][0] <= _relation_squares(ordered):  # even seats cost nothing here
            break
    return min(found, key=lambda each: each[0])[1]


def _relation_squares(tables: Sequence[BotsBySeat]) -> int:
    relations = DistanceCounts()
    for bots in tables:
        relations.add_table(bots)
    return relations.sum_of_squares()


def even_out_seats(tables: Sequence[BotsBySeat], sweeps: int = MOST_RELATION_SWEEPS) -> list[BotsBySeat]:
    """Return the same tables, seated so that no bot sits at one seat two times more often than at another."""
    evening = _SeatEvening(tables)
    evening.even_out_all()
    if not sweeps:
        return evening.tables
    relations = _RelationSearch(evening.tables)
    for _ in range(sweeps):
        if not relations.sweep_tables():
            break
    return relations.tables


class _SeatEvening:
    """Tables, with the tables of each bot by seat."""

    def __init__(self, tables: Sequence[BotsBySeat]) -> None:
        self.tables = [tuple(bots) for bots in tables]
        self._at: dict[tuple[str, int], list[int]] = defaultdict(list)
        for number, bots in enumerate(self.tables):
            for seat, bot in enumerate(bots):
                self._at[bot, seat].append(number)
        self._bots = sorted({bot for bots in self.tables for bot in bots})

    def even_out_all(self) -> None:
        """Turn paths until all seats are even. Each path makes the sum of the squares of all counts smaller, so this ends."""
        size = max(map(len, self.tables), default=0)
        while any(self._even_out_pair(*seats) for seats in permutations(range(size), 2)):
            pass

    def _even_out_pair(self, one: int, other: int) -> bool:
        """Even out two seats, for bots that have too many of the first. Tell whether anything was changed."""
        is_changed = False
        for bot in self._bots:
            while self._surplus(bot, one, other) > 1:
                self._turn_path(self._find_path(bot, one, other), one, other)
                is_changed = True
        return is_changed

    def _surplus(self, bot: str, one: int, other: int) -> int:
        return len(self._at[bot, one]) - len(self._at[bot, other])

    def _find_path(self, start: str, one: int, other: int) -> list[int]:
        """Return the tables of a shortest path from this bot to one that sits at `other` more often than at `one`.

        There is one: all bots that can be reached from the start have together no fewer arrows in than out.
        """
        came_by: dict[str, tuple[str, int]] = {}
        queue, seen = deque([start]), {start}
        while self._surplus(bot := queue.popleft(), one, other) >= 0:
            for number in self._at[bot, one]:
                after = self.tables[number][other]
                if after not in seen:
                    seen.add(after)
                    came_by[after] = (bot, number)
                    queue.append(after)
        path: list[int] = []
        while bot != start:
            bot, number = came_by[bot]
            path.append(number)
        return path

    def _turn_path(self, numbers: Sequence[int], one: int, other: int) -> None:
        """Exchange the two seats at these tables."""
        for number in numbers:
            bots = list(self.tables[number])
            for seat, away in ((one, other), (other, one)):
                self._at[bots[seat], seat].remove(number)
                self._at[bots[seat], away].append(number)
            bots[one], bots[other] = bots[other], bots[one]
            self.tables[number] = tuple(bots)


class _RelationSearch:
    """Reseats one table after the other, if that makes relations more even and leaves the seats even."""

    def __init__(self, tables: Sequence[BotsBySeat]) -> None:
        self.tables = list(tables)
        self._seats, self._relations = SeatCounts(), DistanceCounts()
        for bots in self.tables:
            self._count_table(bots, 1)
        self._played = Counter(bot for bots in self.tables for bot in bots)

    def sweep_tables(self) -> bool:
        """Go through all tables once. Tell whether any was reseated."""
        is_changed = False
        for number, bots in enumerate(self.tables):
            self._count_table(bots, -1)
            choices = [order for order in permutations(bots) if self._stays_even(order)]
            best = min(choices, key=self._relations.table_cost)
            if self._relations.table_cost(best) < self._relations.table_cost(bots):
                self.tables[number], is_changed = best, True
            self._count_table(self.tables[number], 1)
        return is_changed

    def _stays_even(self, bots: BotsBySeat) -> bool:
        """Tell whether each of these bots, seated like this, is at each seat as often as the most even counts allow."""
        size, counts = len(bots), self._seats.counts
        return all(
            self._played[bot] // size <= counts[bot, seat] + (seat == own) <= -(-self._played[bot] // size)
            for own, bot in enumerate(bots)
            for seat in range(size)
        )

    def _count_table(self, bots: BotsBySeat, times: int) -> None:
        self._seats.add_table(bots, times)
        self._relations.add_table(bots, times)
