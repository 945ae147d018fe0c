"""Who did how well beside whom: counts, without any statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.standings.scoring import counted_points


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

    @property
    def share(self) -> float:
        """The share of the matches in which it finished ahead; a tie is half. 0 where there are none."""
        return (self.ahead + self.level / 2) / max(self.matches, 1)


def crosstable(results: Iterable[LoggedResult]) -> dict[tuple[str, str], Cell]:
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
