"""Measures how even a schedule is: the least and the most of each count that should be equal for all, and its mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from seatwise_server.competition.numeric.linalg import add_up
from seatwise_server.competition.schedules.seat_balance import DistanceCounts, SeatCounts


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
