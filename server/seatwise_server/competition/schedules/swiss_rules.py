"""The rules of a round of a Swiss tournament, by docs/statistics.md: the weight of each pair, and the check of a draw.

Entrants are numbers: their places in the list of entrants, from 0. The standings order them by score, then by seed. No exchange of
two entrants makes a draw better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from seatwise_server.competition.designs.lightest_tables import find_better_exchange
from seatwise_server.competition.designs.seat_balance import SeatAssigner
from seatwise_server.competition.schedules.schedule import RoundDraw

SCORE_UNITS: Final = 720
"""Scores are compared in so many parts of a point, which hold all shares of tables of two to four exactly."""

NumberedPair = tuple[int, int]
"""The numbers of two entrants, the smaller one first."""


@dataclass(frozen=True, slots=True)
class SwissState:
    """The tournament after a number of rounds: all that a draw depends on."""

    scores: tuple[int, ...]
    """By entrant, in `SCORE_UNITS`."""
    tables: tuple[tuple[int, ...], ...] = ()
    """The tables that were played, by seat."""
    byes: frozenset[int] = frozenset()
    """The entrants that have had a bye."""
    floaters: frozenset[int] = frozenset()
    """The entrants that met a lower score in the last round."""

    def standings(self) -> list[int]:
        """Return the entrants, the best first."""
        return sorted(range(len(self.scores)), key=lambda entrant: (-self.scores[entrant], entrant))

    def choose_byes(self, size: int) -> tuple[int, ...]:
        """Return the entrants that have a bye in a round at tables of this size."""
        entrants = [entrant for entrant in reversed(self.standings()) if entrant not in self.byes]
        return tuple(entrants[: len(self.scores) % size])

    def list_seated(self, size: int) -> list[int]:
        """Return the entrants without a bye in that round, the best first."""
        byes = set(self.choose_byes(size))
        return [entrant for entrant in self.standings() if entrant not in byes]

    def count_meetings(self) -> Counter[NumberedPair]:
        """Return how often each pair has met."""
        return count_pairs(self.tables)

    def find_floaters(self, tables: Iterable[Sequence[int]]) -> frozenset[int]:
        """Return the entrants that meet a lower score at these tables."""
        return frozenset(
            entrant
            for table in tables
            for entrant in table
            if self.scores[entrant] > min(self.scores[other] for other in table)
        )


def count_pairs(tables: Iterable[Sequence[int]]) -> Counter[NumberedPair]:
    """Return how often each pair shares one of these tables."""
    return Counter(pair for table in tables for pair in combinations(sorted(table), 2))


def weigh_repeats(met: Mapping[NumberedPair, int], entrants: int, size: int) -> list[list[int]]:
    """Return the weight of each pair by its meetings alone: that it meets again, and then how often it has met."""
    unit = 1 + _most_pairs(entrants, size) * max(met.values(), default=0)
    weights = [[0] * entrants for _ in range(entrants)]
    for (one, other), times in met.items():
        if times:
            weights[one][other] = weights[other][one] = unit + times - 1
    return weights


def weigh_pairs(state: SwissState, size: int, ahead: Iterable[Sequence[int]] = ()) -> list[list[int]]:
    """Return the weight of each pair of entrants, in whole numbers. `ahead` holds the tables that the next round needs."""
    entrants = len(state.scores)
    pairs, fold = _most_pairs(entrants, size), _Fold(state, size)
    float_unit = 1 + pairs * entrants**2
    score_unit = float_unit * (1 + pairs)
    ahead_unit = score_unit * (1 + pairs * (max(state.scores) - min(state.scores)) ** 2)
    repeat_unit = ahead_unit * (1 + pairs)
    weights = weigh_repeats(state.count_meetings(), entrants, size)
    for one, other in combinations(range(entrants), 2):
        apart = state.scores[one] - state.scores[other]
        upper = one if apart > 0 else other
        weights[one][other] = weights[other][one] = (
            weights[one][other] * repeat_unit
            + apart * apart * score_unit
            + (apart != 0 and upper in state.floaters) * float_unit
            + fold.distance(one, other)
        )
    for one, other in count_pairs(ahead):
        weights[one][other] += ahead_unit
        weights[other][one] += ahead_unit
    return weights


def find_draw_fault(draw: RoundDraw, state: SwissState, size: int, *, is_last: bool) -> str:
    """Return what breaks the rules in this draw of the round after this state; "" if nothing does."""
    entrants = set(range(len(state.scores)))
    if draw.byes != state.choose_byes(size):
        return (
            f"the byes are {list(draw.byes)}, and by the standings they are {list(state.choose_byes(size))}"
        )
    for name, tables in (("tables", draw.tables), ("ahead", draw.ahead)):
        seated = [entrant for table in tables for entrant in table]
        if len(set(seated)) != len(seated) or not entrants.issuperset(seated):
            return f"{name}: an entrant is named twice, or is none"
        if any(len(table) != size for table in tables):
            return f"{name}: a table has not {size} seats"
    if entrants.difference(*draw.tables) != set(draw.byes) or (draw.ahead and is_last):
        return "the tables are not those of all entrants without a bye"
    return _find_choice_fault(draw, state, size)


def _find_choice_fault(draw: RoundDraw, state: SwissState, size: int) -> str:
    """Return which choice of the draw is not the best one; "" if all are."""
    if tuple(draw.tables) != sort_tables(draw.tables, state):
        return "the tables are not in the order of their best entrants"
    better = find_better_exchange(weigh_pairs(state, size, draw.ahead), draw.tables)
    if better is not None:
        return f"an exchange of the entrants {better[0]} and {better[1]} makes the draw better"
    seating = SeatAssigner(state.tables)
    for table in draw.tables:
        if not seating.is_best_order(table):
            return f"the table {list(table)} has an order of seats that is rarer"
    return ""


def sort_tables(tables: Iterable[tuple[int, ...]], state: SwissState) -> tuple[tuple[int, ...], ...]:
    """Return the tables in the order of their best entrants."""
    rank = {entrant: place for place, entrant in enumerate(state.standings())}
    return tuple(sorted(tables, key=lambda table: min(rank[entrant] for entrant in table)))


def _most_pairs(entrants: int, size: int) -> int:
    """Return how many pairs share a table in one round, at most."""
    return entrants * (size - 1) // 2


class _Fold:
    """Each group of equals in parts: as many as a table has seats, and a rest that does not fill one more table."""

    def __init__(self, state: SwissState, size: int) -> None:
        self._rank: dict[int, int] = {}
        self._part: dict[int, tuple[int, int]] = {}
        """By entrant its part, and its place in it."""
        self._length: dict[int, int] = {}
        """By score, the length of a part."""
        groups: dict[int, list[int]] = {}
        for rank, entrant in enumerate(state.list_seated(size)):
            self._rank[entrant] = rank
            groups.setdefault(state.scores[entrant], []).append(entrant)
        for score, group in groups.items():
            self._length[score] = length = len(group) // size
            for at, entrant in enumerate(group):
                self._part[entrant] = divmod(at, length) if at < size * length else (size, length)
        self._scores = state.scores

    def distance(self, one: int, other: int) -> int:
        """Return the squared distance of the two places in their parts, or of the ranks if the scores differ."""
        if one not in self._rank or other not in self._rank:
            return 0
        if self._scores[one] != self._scores[other]:
            return int((self._rank[one] - self._rank[other]) ** 2)
        (part, at), (part_of_other, there) = self._part[one], self._part[other]
        length = self._length[self._scores[one]]
        return length * length if part == part_of_other else (at - there) ** 2
