"""Who plays whom on a ladder: one pass over those who attend, a pure function of what is known about them.

Bots are served in the order in which they have waited, and each takes the nearest in rating who may sit with it. Near is
counted in places of the table, not in points: at the top of a ladder, where ratings are far apart, the next places are as
near as in its middle. The longer a bot has waited the further it looks, and the sooner it will have met an opponent again;
after `PATIENCE_S` it plays whoever has waited longest, so that nobody starves, wherever its rating is.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from itertools import combinations, islice, pairwise
from operator import attrgetter

PLACES_PER_SEAT = 4
"""A bot that has just come looks so many places up and down for each other seat of its table."""
RANGE_DOUBLES_S = 3.0
"""It looks twice as far after every so many seconds,"""
MEMORY_HALVES_S = 10.0
"""and minds half as many recent opponents after every so many."""
RATING_PATIENCE_S = 20.0
FIRST_BOTS_PER_SEAT = 3
"""Where there is not room for all, a table's bots are among those first in waiting, so many for each place."""
MOST_CANDIDATES = 40
"""So many candidates are looked at for one table at most: one owner's thousand bots shall not hold up a pass."""

PairedTable = tuple[str, ...]
"""Bots by seat."""


@dataclass(frozen=True, slots=True)
class AttendingBot:
    """A bot that is present on the ladder, whether it waits or sits at tables."""

    bot: str
    rating: float
    """The middle of it, `Rating.mu`: a newcomer is among the others, not below them."""
    waited_s: float = 0.0
    """Seconds since it could have been given the next seat."""
    owner: str = ""
    """"" is nobody: a bot of the house is at odds with no other."""
    recent_opponents: tuple[str, ...] = ()
    """Its last opponents, the latest first."""
    seat_counts: tuple[int, ...] = (0, 0, 0, 0)
    """How often it has sat in each seat."""
    free_matches: int = 1
    """How many matches more it would take now; with 0 it only counts among those who attend."""


@dataclass(frozen=True, slots=True)
class PairingRules:
    """What a ladder has laid down about its tables."""

    seats: int
    owners_apart: bool = True
    """Never two bots of one owner at a table of three or four, where they could help each other."""
    memory: int = 9
    """Nobody meets one of its last so many opponents again, if enough others attend."""

    def pair_tables(self, attending: Sequence[AttendingBot], room: int) -> list[PairedTable]:
        """At most `room` tables, each bot at no more than one of them."""
        if room <= 0:
            return []
        floor = _PairingPass(self, sorted(attending, key=attrgetter("rating", "bot")))
        return floor.pair_tables(room)

    def memory_among(self, attending: int) -> int:
        """Opponents to be avoided, so that enough others are left even if all their tables end at once."""
        return max(0, min(self.memory, (attending - self.seats) // (self.seats - 1)))

    def keeps_apart(self) -> bool:
        return self.owners_apart and self.seats > 2


class _PairingPass:
    """One pass. Bots are numbers here, their places in the order of rating; those still free form a linked list."""

    def __init__(self, rules: PairingRules, bots: Sequence[AttendingBot]) -> None:
        self.rules = rules
        self.apart = rules.keeps_apart()
        self.bots = bots
        self.ratings = [bot.rating for bot in bots]
        self.waited = [bot.waited_s for bot in bots]
        self.memory = rules.memory_among(len(bots))
        self.is_free = [bot.free_matches > 0 for bot in bots]
        self.up: list[int] = []
        self.down: list[int] = []

    def pair_tables(self, room: int) -> list[PairedTable]:
        waiting = [number for number, free in enumerate(self.is_free) if free]
        waiting.sort(key=self.waited.__getitem__, reverse=True)
        first = self._longest_waiting(waiting, FIRST_BOTS_PER_SEAT * room * self.rules.seats)
        tables = self._pair_by_rating(first, room)
        if len(first) < len(waiting):
            tables += self._pair_by_rating(waiting, room - len(tables))
        return tables + self._pair_overdue(waiting, room - len(tables))

    def _longest_waiting(self, waiting: Sequence[int], count: int) -> Sequence[int]:
        """So many, and who has waited as long as the last of them."""
        if count >= len(waiting):
            return waiting
        least = self.waited[waiting[count - 1]]
        return [number for number in waiting if self.waited[number] >= least]

    def _pair_by_rating(self, waiting: Sequence[int], room: int) -> list[PairedTable]:
        """Tables of some of those who wait; the longest in waiting comes first."""
        self._link_free_bots(waiting)
        tables: list[PairedTable] = []
        for first in waiting:
            if len(tables) == room:
                break
            if self.is_free[first] and (table := self._find_table(first)):
                tables.append(self._take_table(table))
        return tables

    def _link_free_bots(self, waiting: Iterable[int]) -> None:
        """For each that is free the next above and below it; past the ends stand -1 and the number of bots."""
        count, among = len(self.bots), set(waiting)
        self.up, self.down = [count] * (count + 1), [-1] * (count + 1)
        chain = [-1, *(number for number, free in enumerate(self.is_free) if free and number in among), count]
        for below, above in pairwise(chain):
            self.up[below], self.down[above] = above, below

    def _find_table(self, first: int) -> list[int] | None:
        """The first and the nearest that may sit with it; None if there are not enough within its reach."""
        bots, anchor, seats = self.bots, self.bots[first], self.rules.seats
        reach = PLACES_PER_SEAT * (seats - 1) << min(int(anchor.waited_s / RANGE_DOUBLES_S), 30)
        memory = self.memory >> min(int(anchor.waited_s / MEMORY_HALVES_S), 30)
        names, met = {anchor.bot}, set(anchor.recent_opponents[:memory])
        owners = {anchor.owner} if self.apart and anchor.owner else set()
        table = [first]
        for number in islice(self._nearest_free_bots(first, reach), MOST_CANDIDATES):
            other = bots[number]
            recent = other.recent_opponents[:memory]
            if other.bot in met or other.owner in owners or not names.isdisjoint(recent):
                continue
            table.append(number)
            if len(table) == seats:
                return table
            names.add(other.bot)
            met.update(recent)
            if self.apart and other.owner:
                owners.add(other.owner)
        return None

    def _nearest_free_bots(self, first: int, reach: int) -> Iterator[int]:
        """Those who are free, no more than so many places away, by how near their ratings are."""
        ratings, up, down, rating = self.ratings, self.up, self.down, self.ratings[first]
        lowest, highest = max(first - reach, 0), min(first + reach, len(ratings) - 1)
        below, above = down[first], up[first]
        while True:
            if below >= lowest and not (
                above <= highest and ratings[above] - rating < rating - ratings[below]
            ):
                yield below
                below = down[below]
            elif above <= highest:
                yield above
                above = up[above]
            else:
                return

    def _pair_overdue(self, waiting: Iterable[int], room: int) -> list[PairedTable]:
        """Those whose patience is at an end, with whoever has waited longest; only owners are kept apart."""
        tables: list[PairedTable] = []
        queues = self._queue_by_owner(waiting)
        heads = [(queue[0][0], owner) for owner, queue in queues.items()]  # by place: already a heap
        while len(tables) < room and len(heads) >= self.rules.seats:
            called = [heappop(heads) for _ in range(self.rules.seats)]
            table = [queues[owner].popleft()[1] for _, owner in called]
            if self.bots[table[0]].waited_s < RATING_PATIENCE_S:
                break
            tables.append(self._take_table(table))
            for _, owner in called:
                if queues[owner]:
                    heappush(heads, (queues[owner][0][0], owner))
        return tables

    def _queue_by_owner(self, waiting: Iterable[int]) -> dict[object, deque[tuple[int, int]]]:
        """Place in the order of waiting, and number, of those that are still free."""
        queues: dict[object, deque[tuple[int, int]]] = defaultdict(deque)
        for place, number in enumerate(waiting):
            if self.is_free[number]:
                owner = (self.apart and self.bots[number].owner) or number
                queues[owner].append((place, number))
        return queues

    def _take_table(self, table: list[int]) -> PairedTable:
        up, down = self.up, self.down
        for number in table:
            self.is_free[number] = False
            below, above = down[number], up[number]
            up[below], down[above] = above, below
        return assign_rarest_seats([self.bots[number] for number in table])


def assign_rarest_seats(bots: Iterable[AttendingBot]) -> PairedTable:
    """Each where it has sat least: two change places as long as that makes their counts more even."""
    order = list(bots)
    pairs = _seat_pairs(len(order))
    changes = True
    while changes:
        changes = False
        for one, two in pairs:
            a, b = order[one].seat_counts, order[two].seat_counts
            if a[two] + b[one] < a[one] + b[two]:
                order[one], order[two] = order[two], order[one]
                changes = True
    return tuple([bot.bot for bot in order])


@cache
def _seat_pairs(seats: int) -> tuple[tuple[int, int], ...]:
    return tuple(combinations(range(seats), 2))
