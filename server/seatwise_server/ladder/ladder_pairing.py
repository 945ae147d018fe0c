"""Pairs the bots of a ladder: one pass over the attending bots, a pure function of what is known about them.

Bots are served in the order of their waiting times. Each gets the bots nearest in rating that may sit with it.
Distance is counted in places of the table, not in points: at the top of a ladder ratings are far apart, and yet
the next places are as near as in the middle.

The longer a bot has waited, the wider is its range, and the sooner it may meet an opponent again. After
`RATING_PATIENCE_S` it plays the bots that have waited longest, at any rating, so that no bot waits forever.
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
"""The range of a bot that has just come, in places up and down for each other seat of its table."""
RANGE_DOUBLES_S = 3.0
"""Seconds of waiting after which the range doubles, and doubles again."""
MEMORY_HALVES_S = 10.0
"""Seconds of waiting after which the number of recent opponents to avoid is halved, and halved again."""
RATING_PATIENCE_S = 20.0
"""Seconds of waiting after which the rating does not count any more."""
FIRST_BOTS_PER_SEAT = 3
"""Bots for each free seat that are paired first if there is not room for all: those that have waited longest."""
MOST_OF_OWNER = 8
"""The most bots of one owner that are tried for one table, if the first ones have met a bot of the table too often."""
MOST_CANDIDATES = 40
"""The most candidates for one table, so that a thousand bots of one owner do not delay a pass."""

PairedTable = tuple[str, ...]
"""The names of the bots by seat."""


@dataclass(frozen=True, slots=True)
class AttendingBot:
    """A bot that attends the ladder, whether it waits or plays."""

    bot: str
    rating: float
    """The mean of its rating, `Rating.mu`. With it a newcomer starts among the others, not below them."""
    waited_s: float = 0.0
    """Seconds since it could have got its next seat."""
    owner: str = ""
    """The owner's name; empty for house bots, which may sit with all others."""
    recent_opponents: tuple[str, ...] = ()
    """Its last opponents, the latest first. It meets them again if it has waited for long."""
    seat_counts: tuple[int, ...] = (0, 0, 0, 0)
    """How often it has sat at each seat, by seat."""
    barred: frozenset[str] = frozenset()
    """The bots that it has met too often of late: a match with one of them would not be rated."""
    free_matches: int = 1
    """The number of matches that it would take now. A bot with 0 counts only as attending."""


@dataclass(frozen=True, slots=True)
class PairingRules:
    """The rules by which a ladder forms its tables."""

    seats: int
    owners_apart: bool = True
    """Whether bots of one owner never share a table, where they could help each other. House bots have no owner."""
    memory: int = 9
    """A bot does not meet any of its last `memory` opponents again, if enough others attend."""

    def pair_tables(self, attending: Sequence[AttendingBot], room: int) -> list[PairedTable]:
        """Return at most `room` tables. Each bot is at one table at most."""
        if room <= 0:
            return []
        this_pass = _PairingPass(self, sorted(attending, key=attrgetter("rating", "bot")))
        return this_pass.pair_tables(room)

    def memory_among(self, attending: int) -> int:
        """Return how many opponents to avoid, such that enough bots remain even if all their tables end at once."""
        return max(0, min(self.memory, (attending - self.seats) // (self.seats - 1)))


class _PairingPass:
    """One pass. Bots are numbers here: their positions in the order of ratings. The free ones form a linked list."""

    def __init__(self, rules: PairingRules, bots: Sequence[AttendingBot]) -> None:
        self.rules = rules
        self.apart = rules.owners_apart
        self.bots = bots
        self.ratings = [bot.rating for bot in bots]
        self.waited = [bot.waited_s for bot in bots]
        self.memory = rules.memory_among(len(bots))
        self.is_free = [bot.free_matches > 0 for bot in bots]
        self.up: list[int] = []
        self.down: list[int] = []

    def pair_tables(self, room: int) -> list[PairedTable]:
        """Return at most `room` tables: first by rating, then for bots that have waited for `RATING_PATIENCE_S`."""
        waiting = [number for number, free in enumerate(self.is_free) if free]
        waiting.sort(key=self.waited.__getitem__, reverse=True)
        first = self._longest_waiting(waiting, FIRST_BOTS_PER_SEAT * room * self.rules.seats)
        tables = self._pair_by_rating(first, room)
        if len(first) < len(waiting):
            tables += self._pair_by_rating(waiting, room - len(tables))
        return tables + self._pair_overdue(waiting, room - len(tables))

    def _longest_waiting(self, waiting: Sequence[int], count: int) -> Sequence[int]:
        """Return the `count` bots that have waited longest, and all that have waited as long as the last of them."""
        if count >= len(waiting):
            return waiting
        least = self.waited[waiting[count - 1]]
        return [number for number in waiting if self.waited[number] >= least]

    def _pair_by_rating(self, waiting: Sequence[int], room: int) -> list[PairedTable]:
        """Form tables of some of the waiting bots, beginning with the one that has waited longest."""
        self._link_free_bots(waiting)
        tables: list[PairedTable] = []
        for first in waiting:
            if len(tables) == room:
                break
            if self.is_free[first] and (table := self._find_table(first)):
                tables.append(self._take_table(table))
        return tables

    def _link_free_bots(self, waiting: Iterable[int]) -> None:
        """Link each free bot to the next free one above and below it. The ends are -1 and the number of bots."""
        count, among = len(self.bots), set(waiting)
        self.up, self.down = [count] * (count + 1), [-1] * (count + 1)
        chain = [-1, *(number for number, free in enumerate(self.is_free) if free and number in among), count]
        for below, above in pairwise(chain):
            self.up[below], self.down[above] = above, below

    def _find_table(self, first: int) -> list[int] | None:
        """Return a bot and the nearest bots that may sit with it. `None` if there are not enough within its range."""
        bots, anchor, seats = self.bots, self.bots[first], self.rules.seats
        reach = PLACES_PER_SEAT * (seats - 1) << min(int(anchor.waited_s / RANGE_DOUBLES_S), 30)
        memory = self.memory >> min(int(anchor.waited_s / MEMORY_HALVES_S), 30)
        names, met = {anchor.bot}, anchor.barred.union(anchor.recent_opponents[:memory])
        owners = {anchor.owner} if self.apart and anchor.owner else set()
        table = [first]
        for number in islice(self._nearest_free_bots(first, reach), MOST_CANDIDATES):
            other = bots[number]
            avoided = other.barred.union(other.recent_opponents[:memory])
            if other.bot in met or other.owner in owners or not names.isdisjoint(avoided):
                continue
            table.append(number)
            if len(table) == seats:
                return table
            names.add(other.bot)
            met |= avoided
            if self.apart and other.owner:
                owners.add(other.owner)
        return None

    def _nearest_free_bots(self, first: int, reach: int) -> Iterator[int]:
        """Yield the free bots that are at most `reach` places away, the nearest in rating first."""
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
        """Form tables that begin with a bot whose patience is over, and take those that have waited longest.

        Only bots of one owner are kept apart, and bots that have met too often.
        """
        tables: list[PairedTable] = []
        queues = self._queue_by_owner(waiting)
        heads = [(queue[0][0], owner) for owner, queue in queues.items()]  # in waiting order, so it is a heap
        while len(tables) < room and len(heads) >= self.rules.seats:
            called: list[object] = []
            table: list[int] = []
            while heads and len(table) < self.rules.seats and len(called) < MOST_CANDIDATES:
                called.append(owner := heappop(heads)[1])
                found = next(
                    (each for each in islice(queues[owner], MOST_OF_OWNER) if self._may_join(table, each[1])),
                    None,
                )
                if found and (table or self.bots[found[1]].waited_s >= RATING_PATIENCE_S):
                    table.append(found[1])
                    queues[owner].remove(found)
                elif not table:
                    return tables
            if len(table) == self.rules.seats:
                tables.append(self._take_table(table))
            for owner in called:
                if queues[owner]:
                    heappush(heads, (queues[owner][0][0], owner))
        return tables

    def _may_join(self, table: Iterable[int], number: int) -> bool:
        """Return whether a bot has not met one of the table too often."""
        own = self.bots[number]
        return all(own.bot not in (one := self.bots[at]).barred and one.bot not in own.barred for at in table)

    def _queue_by_owner(self, waiting: Iterable[int]) -> dict[object, deque[tuple[int, int]]]:
        """Return the queue of free bots of each owner, as (position in the order of waiting, number)."""
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
    """Return the bots by seat, each where it has sat least. Two bots swap seats as long as that evens out their counts."""
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
