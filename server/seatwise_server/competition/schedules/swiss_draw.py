"""Draw one round of a Swiss tournament: search for the tables that `swiss_rules` calls best."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from random import Random
from typing import Final

from seatwise_server.competition.designs.lightest_tables import (
    SearchBounds,
    TablesOfNumbers,
    find_lightest_tables,
    tables_weight,
)
from seatwise_server.competition.schedules.schedule import RoundDraw
from seatwise_server.competition.schedules.seat_balance import SeatAssigner
from seatwise_server.competition.schedules.swiss_rules import (
    SwissState,
    count_pairs,
    sort_tables,
    weigh_pairs,
    weigh_repeats,
)

LOOK_AHEAD_ATTEMPTS: Final = 32
"""So many other tables are tried if the next round would have repeated pairs."""
LOOK_AHEAD_KICK_WORK: Final = 20_000
"""Bounds the kicks in each of these attempts. See `SearchBounds`."""
LOOK_AHEAD_NODES: Final = 10_000
"""Bounds the branch and bound in each of them."""
LOOK_AHEAD_BOUNDS: Final = SearchBounds(LOOK_AHEAD_KICK_WORK, LOOK_AHEAD_NODES)


@lru_cache(maxsize=64)
def draw_swiss_round(state: SwissState, number: int, size: int, seed: str, *, is_last: bool) -> RoundDraw:
    """Draw the round with this number after this state. The same arguments give the same draw on every machine."""
    byes = state.choose_byes(size)
    search = _RoundDraw(state, size, f"swiss/{seed}/{number}")
    tables, ahead = search.draw_tables(is_last=is_last)
    seating, chance = SeatAssigner(state.tables), Random(f"swiss/{seed}/{number}")
    seated = [
        seating.assign_best_seats(sorted(table), chance) for table in sort_tables(map(tuple, tables), state)
    ]
    return RoundDraw(number, tuple(seated), byes, tuple(map(tuple, ahead)))


class _RoundDraw:
    def __init__(self, state: SwissState, size: int, seed: str) -> None:
        self._state, self._size, self._seed = state, size, seed
        self._met = state.count_meetings()
        byes = set(state.choose_byes(size))
        self._seated = [entrant for entrant in state.standings() if entrant not in byes]
        self._repeats = weigh_repeats(self._met, len(state.scores), size)

    def draw_tables(self, *, is_last: bool) -> tuple[TablesOfNumbers, TablesOfNumbers]:
        """Return the tables, and those of the next round that they were chosen to allow, if that was needed."""
        tables = find_lightest_tables(weigh_pairs(self._state, self._size), self._fold_tables(), self._seed)
        if is_last or len(self._seated) <= self._size:
            return tables, []
        _, needed = self._next_tables(tables, SearchBounds())
        if needed <= self._unavoidable_repeats():
            return tables, []
        return self._look_ahead(tables, needed) or (tables, [])

    def _look_ahead(
        self, tables: TablesOfNumbers, needed: int
    ) -> tuple[TablesOfNumbers, TablesOfNumbers] | None:
        """Return tables with as few repeated pairs, after which the next round has fewer. `None` if none are found."""
        least, found = tables_weight(self._repeats, tables), None
        for attempt in range(LOOK_AHEAD_ATTEMPTS):
            seed = f"{self._seed}/{attempt}"
            tried = find_lightest_tables(self._repeats, self._shuffle_tables(seed), seed, LOOK_AHEAD_BOUNDS)
            if tables_weight(self._repeats, tried) > least:
                continue
            ahead, repeats = self._next_tables(tried, LOOK_AHEAD_BOUNDS)
            if repeats < needed:
                needed, found = repeats, (tried, ahead)
            if needed <= self._unavoidable_repeats():
                break
        if found is None:
            return None
        tables, ahead = found
        weights = weigh_pairs(self._state, self._size, ahead)
        return find_lightest_tables(weights, tables, self._seed), ahead

    def _next_tables(self, tables: TablesOfNumbers, bounds: SearchBounds) -> tuple[TablesOfNumbers, int]:
        """Return the tables of the next round with the fewest repeated pairs after these tables, and how many these are.

        The next byes depend on results. The standings so far stand in for them.
        """
        state = SwissState(
            self._state.scores,
            (*self._state.tables, *map(tuple, tables)),
            self._state.byes.union(self._state.choose_byes(self._size)),
        )
        byes = state.choose_byes(self._size)
        seated = [entrant for entrant in state.standings() if entrant not in byes]
        met = state.count_meetings()
        weights = weigh_repeats(met, len(state.scores), self._size)
        start = [seated[at :: len(seated) // self._size] for at in range(len(seated) // self._size)]
        found = find_lightest_tables(weights, start, self._seed, bounds)
        return found, sum(met[pair] > 0 for pair in count_pairs(found))

    def _unavoidable_repeats(self) -> int:
        """Return how many repeated pairs the next round has at least.

        A table of the next round takes its bots from the tables and byes of this one. If these are fewer than its seats, some
        of its bots meet a second time.
        """
        tables, byes = divmod(len(self._state.scores), self._size)
        each, more = divmod(self._size, tables + byes)
        return tables * ((tables + byes - more) * comb(each, 2) + more * comb(each + 1, 2))

    def _fold_tables(self) -> TablesOfNumbers:
        """Return tables in which each group of equals is folded, and the rests of groups sit together from the top."""
        groups: dict[int, list[int]] = {}
        for entrant in self._seated:
            groups.setdefault(self._state.scores[entrant], []).append(entrant)
        tables: TablesOfNumbers = []
        rest: list[int] = []
        for group in groups.values():
            count = len(group) // self._size
            tables.extend(group[at : self._size * count : count] for at in range(count))
            rest.extend(group[self._size * count :])
        return tables + _cut_tables(rest, self._size)

    def _shuffle_tables(self, seed: str) -> TablesOfNumbers:
        chance = Random(seed)
        return _cut_tables(sorted(self._seated, key=lambda _: chance.random()), self._size)


def _cut_tables(entrants: Sequence[int], size: int) -> TablesOfNumbers:
    return [list(entrants[at : at + size]) for at in range(0, len(entrants), size)]
