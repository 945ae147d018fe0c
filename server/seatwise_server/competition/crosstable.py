"""Who did how well beside whom, and at which seat: counts, without any statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

from seatwise_server.competition.results import Result
from seatwise_server.competition.tables import counted_points


@dataclass(frozen=True, slots=True)
class Cell:
    """One bot beside another, at all tables at which both sat."""

    matches: int = 0
    ahead: int = 0
    level: int = 0
    difference: float = 0.0
    """Its points less the other's, on average."""

    @property
    def behind(self) -> int:
        """Matches in which the other finished ahead."""
        return self.matches - self.ahead - self.level


def crosstable(results: Iterable[Result]) -> dict[tuple[str, str], Cell]:
    """By (bot, other); pairs that never met are left out. A bot that sits twice meets itself, which says nothing."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for result in results:
        points = counted_points(result)
        for here, there in permutations(range(len(result.bots)), 2):
            bot, other = result.bots[here], result.bots[there]
            if bot != other:
                counts[bot, other, "matches"] += 1
                counts[bot, other, "ahead"] += result.ranks[here] < result.ranks[there]
                counts[bot, other, "level"] += result.ranks[here] == result.ranks[there]
                counts[bot, other, "points"] += points[here] - points[there]
    return {(bot, other): _cell(counts, bot, other) for bot, other, what in counts if what == "matches"}


def _cell(counts: Counter[tuple[str, str, str]], bot: str, other: str) -> Cell:
    matches = counts[bot, other, "matches"]
    return Cell(
        matches,
        counts[bot, other, "ahead"],
        counts[bot, other, "level"],
        counts[bot, other, "points"] / matches,
    )


@dataclass(frozen=True, slots=True)
class Distribution:
    """The points of many matches."""

    counts: tuple[tuple[int, int], ...]
    """How often each number of points was made, the least first."""
    mean: float
    deviation: float
    """The standard one."""
    quarters: tuple[int, int, int, int, int]
    """The least, the most, and what parts the matches in four."""


def distributions(results: Iterable[Result]) -> dict[str, Distribution]:
    """By bot."""
    points: dict[str, list[int]] = {}
    for result in results:
        for bot, own in zip(result.bots, counted_points(result), strict=True):
            points.setdefault(bot, []).append(own)
    return {bot: _distribution(sorted(values)) for bot, values in points.items()}


def _distribution(values: Sequence[int]) -> Distribution:
    count = len(values)
    mean = sum(values) / count
    spread = sum((value - mean) ** 2 for value in values) / max(count - 1, 1)
    low, lower, middle, upper, high = (values[(count - 1) * part // 4] for part in range(5))
    return Distribution(
        tuple(sorted(Counter(values).items())), mean, spread**0.5, (low, lower, middle, upper, high)
    )


@dataclass(frozen=True, slots=True)
class AtSeat:
    """Matches at one seat."""

    matches: int
    points: float
    """The mean; 0 where there is none."""


def seat_balance(results: Sequence[Result]) -> dict[str, tuple[AtSeat, ...]]:
    """By bot, what it had at each seat; under the empty name, all bots together."""
    size = max((len(result.bots) for result in results), default=0)
    sums: Counter[tuple[str, int]] = Counter()
    counts: Counter[tuple[str, int]] = Counter()
    for result in results:
        for seat, (bot, points) in enumerate(zip(result.bots, counted_points(result), strict=True)):
            for name in (bot, ""):
                sums[name, seat] += points
                counts[name, seat] += 1
    names = sorted({name for name, _ in counts})
    return {
        name: tuple(
            AtSeat(counts[name, seat], sums[name, seat] / max(counts[name, seat], 1)) for seat in range(size)
        )
        for name in names
    }
