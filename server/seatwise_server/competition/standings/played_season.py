"""A season as tie-breaks see it: each bot's points, scores, wins and endings, collected once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from seatwise_server.competition.logged_result import FORFEIT_ENDINGS, LoggedResult
from seatwise_server.competition.standings.scoring import (
    BYE_SCORE,
    WALK_OVER_SCORE,
    counted_points,
    match_scores,
)


@dataclass(frozen=True)
class PlayedSeason:
    """The results of a season and what else tie-breaks use."""

    results: tuple[LoggedResult, ...]
    entrants: tuple[str, ...]
    """The first seed first."""
    byes: Mapping[str, int]
    """The number of byes of each bot that had any."""
    seed: str
    """Seeds the draw of lots."""
    walk_overs: Mapping[str, int] = field(default_factory=dict)
    """The number of matches that each bot lost by walk-over."""

    @cached_property
    def points_by_bot(self) -> dict[str, list[float]]:
        """Each bot's counted points, match by match, and then the lowest of the season for each walk-over that it lost."""
        found = _collect_by_bot(self.results, counted_points)
        lowest = min((min(values) for values in found.values()), default=0)
        for bot, count in self.walk_overs.items():
            found.setdefault(bot, []).extend([lowest] * count)
        return found

    @cached_property
    def scores_by_bot(self) -> dict[str, list[float]]:
        """Each bot's scores, match by match, and then one for each walk-over that it lost and for each bye."""
        found = _collect_by_bot(self.results, match_scores)
        for bot, count in self.walk_overs.items():
            found.setdefault(bot, []).extend([WALK_OVER_SCORE] * count)
        for bot, count in self.byes.items():
            found.setdefault(bot, []).extend([BYE_SCORE] * count)
        return found

    @cached_property
    def wins_by_bot(self) -> dict[str, list[float]]:
        """Each bot's share of first rank, match by match: 1 for a win, 1 / n where n seats share it, else 0."""
        return _collect_by_bot(
            self.results, lambda result: [(r == 1) / result.ranks.count(1) for r in result.ranks]
        )

    @cached_property
    def ending_counts(self) -> Counter[tuple[str, str]]:
        """The number of matches by (bot, ending). A bot's seats in one match that end alike count once."""
        return Counter(
            pair for result in self.results for pair in set(zip(result.bots, result.endings, strict=True))
        )

    @cached_property
    def match_counts(self) -> Counter[str]:
        """The number of matches of each bot. Several seats in one match count as one match."""
        return Counter(bot for result in self.results for bot in set(result.bots))

    def count_forfeits(self, bot: str) -> int:
        """Return the number of matches that the bot forfeited or lost by walk-over. Resigning is no forfeit."""
        return self.walk_overs.get(bot, 0) + sum(
            self.ending_counts[bot, ending] for ending in FORFEIT_ENDINGS
        )


def _collect_by_bot(
    results: Iterable[LoggedResult], values_of: Callable[[LoggedResult], Sequence[float]]
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for result in results:
        for bot, value in zip(result.bots, values_of(result), strict=True):
            found.setdefault(bot, []).append(value)
    return found
