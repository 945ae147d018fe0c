"""Counts how each bot did against each other bot: no statistics, only counts and a mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.standings.scoring import counted_points


@dataclass(frozen=True, slots=True)
class CrosstableCell:
    """One bot compared with another, at all tables at which both sat."""

    matches: int = 0
    ahead: int = 0
    """Matches in which it finished ahead of the other."""
    level: int = 0
    """Matches in which both share a rank."""
    difference: float = 0.0
    """Its points minus the other's: the mean over these matches."""

    @property
    def behind(self) -> int:
        """Matches in which the other finished ahead."""
        return self.matches - self.ahead - self.level

    @property
    def share(self) -> float:
        """The share of the matches in which it finished ahead. A shared rank counts half. 0 if there are no matches."""
        return (self.ahead + self.level / 2) / max(self.matches, 1)


def build_crosstable(results: Iterable[LoggedResult]) -> dict[tuple[str, str], CrosstableCell]:
    """Return the cells by (bot, other). Pairs that never met have none, and a bot that sits twice is not its own opponent."""
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
    return {(bot, other): _build_cell(counts, bot, other) for bot, other, what in counts if what == "matches"}


def _build_cell(counts: Counter[tuple[str, str, str]], bot: str, other: str) -> CrosstableCell:
    matches = counts[bot, other, "matches"]
    return CrosstableCell(
        matches,
        counts[bot, other, "ahead"],
        counts[bot, other, "level"],
        counts[bot, other, "points"] / matches,
    )
