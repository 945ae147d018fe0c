"""A season as tie-breaks see it: each bot's points, scores, wins and endings, collected once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations

from seatwise_server.competition.logged_result import FORFEIT_ENDINGS, LoggedResult
from seatwise_server.competition.numeric.linalg import add_up
from seatwise_server.competition.standings.scoring import (
    BYE_SCORE,
    WALK_OVER_SCORE,
    counted_points,
    match_scores,
)

Weighted = tuple[float, float]
"""A value, and its weight."""


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
    missed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By a bot and an opponent, the number of matches that the first lost by walk-over and the second did not."""

    @cached_property
    def points_by_bot(self) -> dict[str, list[Weighted]]:
        """Each bot's counted points, match by match, and then the lowest of the season for each walk-over that it lost."""
        found = self._collect_by_bot(counted_points)
        lowest = min((value for values in found.values() for value, _ in values), default=0)
        for bot, count in self.walk_overs.items():
            found.setdefault(bot, []).extend([(lowest, 1.0)] * count)
        return found

    @cached_property
    def scores_by_bot(self) -> dict[str, list[Weighted]]:
        """Each bot's scores, match by match, and then one for each walk-over that it lost and for each bye."""
        found = self._collect_by_bot(match_scores)
        for bot, count in self.walk_overs.items():
            found.setdefault(bot, []).extend([(WALK_OVER_SCORE, 1.0)] * count)
        for bot, count in self.byes.items():
            found.setdefault(bot, []).extend([(BYE_SCORE, 1.0)] * count)
        return found

    @cached_property
    def wins_by_bot(self) -> dict[str, list[Weighted]]:
        """Each bot's share of first rank, match by match: 1 for a win, 1 / n where n seats share it, else 0."""
        return self._collect_by_bot(lambda result: [(r == 1) / result.ranks.count(1) for r in result.ranks])

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

    @cached_property
    def _weights(self) -> dict[tuple[str, str], float]:
        """By a bot and an opponent that lost matches by walk-over, the weight of a match of the first where the second sits.

        Such an opponent could choose its opponents. So its matches count for all as much as for the bot that it missed most.
        """
        met = Counter(pair for result in self.results for pair in permutations(set(result.bots), 2))
        parts = {
            (away, bot): met[away, bot] / (met[away, bot] + count)
            for (away, bot), count in self.missed.items()
        }
        least: dict[str, float] = {}
        for (away, _), part in parts.items():
            least[away] = min(part, least.get(away, 1.0))
        return {(bot, away): least[away] / parts.get((away, bot), 1.0) for bot, away in met if away in least}

    def _collect_by_bot(
        self, values_of: Callable[[LoggedResult], Sequence[float]]
    ) -> dict[str, list[Weighted]]:
        found: dict[str, list[Weighted]] = {}
        for result in self.results:
            for bot, value in zip(result.bots, values_of(result), strict=True):
                found.setdefault(bot, []).append(
                    (value, min(self._weights.get((bot, other), 1.0) for other in result.bots))
                )
        return found


def weighted_sum(values: Iterable[Weighted]) -> float:
    """Return the sum of the values, each as often as its weight says."""
    return add_up(value * weight for value, weight in values)


def weighted_mean(values: Sequence[Weighted] | None, of_nothing: float) -> float:
    """Return the mean of the values by their weights, or `of_nothing` if there is none with a weight."""
    whole = add_up(weight for _, weight in values or ())
    return weighted_sum(values) / whole if values and whole else of_nothing
