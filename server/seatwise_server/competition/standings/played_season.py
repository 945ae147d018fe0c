"""A season as tie-breaks see it: each bot's points, scores, wins and endings, collected once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from seatwise_server.competition.logged_result import FORFEIT_ENDINGS, LoggedResult
from seatwise_server.competition.numeric.linalg import add_up, center_values, solve_strengths
from seatwise_server.competition.standings.scoring import (
    BYE_SCORE,
    WALK_OVER_SCORE,
    counted_points,
    match_scores,
)

LINK_WEIGHT: Final = 0.01
"""The weight of a comparison of each bot with strength 0, in the fit of what may be expected: some bots may never have met."""
WalkOver = tuple[tuple[str, ...], tuple[str, ...]]
"""A match that was not played: the bots that were to sit, and those of them that lost it by walk-over."""


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
    missed: Sequence[WalkOver] = ()

    @cached_property
    def walk_overs(self) -> Counter[str]:
        """The number of matches that each bot lost by walk-over."""
        return Counter(bot for _, absent in self.missed for bot in absent)

    @cached_property
    def results_by_bot(self) -> dict[str, list[LoggedResult]]:
        """The results of each bot, each once, in their order."""
        found: dict[str, list[LoggedResult]] = {}
        for result in self.results:
            for bot in set(result.bots):
                found.setdefault(bot, []).append(result)
        return found

    @cached_property
    def points_by_bot(self) -> dict[str, list[float]]:
        """Each bot's counted points: of its matches, and of walk-overs the lowest of the season or the expected ones."""
        return self._add_walk_overs(counted_points)

    @cached_property
    def scores_by_bot(self) -> dict[str, list[float]]:
        """Each bot's scores: of its matches, of walk-overs, and of byes."""
        found = self._add_walk_overs(match_scores, (WALK_OVER_SCORE, BYE_SCORE))
        for bot, count in self.byes.items():
            found.setdefault(bot, []).extend([BYE_SCORE] * count)
        return found

    @cached_property
    def wins_by_bot(self) -> dict[str, list[float]]:
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
        return self.walk_overs[bot] + sum(self.ending_counts[bot, ending] for ending in FORFEIT_ENDINGS)

    def _collect_by_bot(self, values_of: Callable[[LoggedResult], Sequence[float]]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for result in self.results:
            for bot, value in zip(result.bots, values_of(result), strict=True):
                found.setdefault(bot, []).append(value)
        return found

    def _add_walk_overs(
        self,
        values_of: Callable[[LoggedResult], Sequence[float]],
        bounds: tuple[float, float] = (-math.inf, math.inf),
    ) -> dict[str, list[float]]:
        """Return the values by bot, with one for each walk-over: the lowest for a bot that lost it, else the expected one.

        Expected values are cut to the bounds. The lowest value is that of the season, if the bounds have none. A bot could choose by
        its absence which opponents the others do not meet. So these get what the season expects of them against all that were to
        sit: the mean value, and its strength above the mean strength of the table.
        """
        found = self._collect_by_bot(values_of)
        if not self.missed:
            return found
        every = [value for values in found.values() for value in values] or [0.0]
        low, high = bounds
        lost = low if math.isfinite(low) else min(every)
        compared = [result for result in self.results if result.compares_bots]
        scores = [center_values(values_of(result)) for result in compared]
        strengths = solve_strengths([result.bots for result in compared], scores, LINK_WEIGHT)
        for bots, absent in self.missed:
            above = center_values([strengths.get(bot, 0.0) for bot in bots])
            for bot, own in zip(bots, above, strict=True):
                if bot in absent:
                    found.setdefault(bot, []).append(lost)
                elif bot in strengths:
                    found[bot].append(max(low, min(high, add_up(every) / len(every) + own)))
        return found


def mean_of(values: Sequence[float] | None, of_nothing: float) -> float:
    """Return the mean of the values, or `of_nothing` if there are none."""
    return add_up(values) / len(values) if values else of_nothing
