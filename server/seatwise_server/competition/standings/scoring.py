"""Scores the bots at one table, in one match or in all matches that shared a deal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import add_up

BYE_SCORE: Final = 1.0
"""The score of a bye, the same as that of a win. A bye gives no points: means of points are over matches alone."""
WALK_OVER_SCORE: Final = 0.0
"""The score of a bot that loses by walk-over. Its opponents get what the season expects of them."""


@dataclass(frozen=True, slots=True)
class TableScore:
    """The points and the score of one bot at a table."""

    points: float
    """The mean of its matches there, as `counted_points` counts them."""
    score: float
    """The share of the other seats that it finished ahead of, from 0 to 1. A shared rank counts half."""


def counted_points(result: LoggedResult) -> tuple[int, ...]:
    """Return the points of a match that count in tables, by seat.

    A bot that left (it resigned or forfeited) keeps at most the lowest points of the bots that stayed. Luck and default
    moves made part of its points. If all left, each gets the lowest points of the match.
    """
    seats = list(zip(result.points, result.endings, strict=True))
    stayed = [points for points, ending in seats if ending == Ending.COMPLETED]
    least = min(stayed, default=min(result.points))
    return tuple(points if ending == Ending.COMPLETED else min(points, least) for points, ending in seats)


def match_scores(result: LoggedResult) -> tuple[float, ...]:
    """Return by seat the share of the other seats that it finished ahead of. The ranks of the result decide."""
    ranks, others = result.ranks, len(result.ranks) - 1
    if not others:
        return (0.5,)
    return tuple(
        (add_up(own < other for other in ranks) + (ranks.count(own) - 1) / 2) / others for own in ranks
    )


def table_scores(results: Sequence[LoggedResult]) -> dict[str, TableScore]:
    """Return the score of each bot in these matches. A bot that has several seats gets their mean."""
    points: dict[str, list[float]] = {}
    shares: dict[str, list[float]] = {}
    for result in results:
        for bot, gained, share in zip(result.bots, counted_points(result), match_scores(result), strict=True):
            points.setdefault(bot, []).append(gained)
            shares.setdefault(bot, []).append(share)
    return {bot: TableScore(_mean(points[bot]), _mean(shares[bot])) for bot in points}


def _mean(values: Sequence[float]) -> float:
    return add_up(values) / len(values)


# Counts how each bot did against each other bot: no statistics, only counts and a mean.


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
    counts: dict[tuple[str, str], list[int]] = {}
    for result in results:
        seats = list(zip(result.bots, result.ranks, counted_points(result), strict=True))
        for (bot, rank, points), (other, other_rank, other_points) in permutations(seats, 2):
            if bot != other:
                cell = counts.setdefault((bot, other), [0, 0, 0, 0])
                cell[0] += 1
                cell[1] += rank < other_rank
                cell[2] += rank == other_rank
                cell[3] += points - other_points
    return {
        pair: CrosstableCell(matches, ahead, level, points / matches)
        for pair, (matches, ahead, level, points) in counts.items()
    }
