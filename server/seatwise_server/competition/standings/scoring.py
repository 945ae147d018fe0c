"""How the bots of one table did against each other, over one match or over all that they played on one deal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatwise_server.competition.logged_result import COMPLETED, LoggedResult


@dataclass(frozen=True, slots=True)
class Tally:
    """What one bot brought home from a table."""

    points: float
    """The mean of its matches there, see `counted_points`."""
    score: float
    """The share of the others that it finished ahead of, from 0 to 1; who shares a place has half."""


def counted_points(result: LoggedResult) -> tuple[int, ...]:
    """The points that count in tables.

    Who left (resigned or forfeited) keeps no more than the least that anybody else at the table has, because its points were
    made by others' luck and by default moves.
    """
    stayed = [
        points for points, ending in zip(result.points, result.endings, strict=True) if ending == COMPLETED
    ]
    least = min(stayed, default=min(result.points))
    return tuple(
        points if ending == COMPLETED else min(points, least)
        for points, ending in zip(result.points, result.endings, strict=True)
    )


def scores(result: LoggedResult) -> tuple[float, ...]:
    """By seat, the share of the others that it finished ahead of: `result.ranks` decide."""
    others = len(result.ranks) - 1
    return tuple(
        sum((own < other) + (own == other) / 2 for other in _without(result.ranks, seat)) / others
        if others
        else 0.5
        for seat, own in enumerate(result.ranks)
    )


def _without(ranks: Sequence[int], seat: int) -> Sequence[int]:
    return (*ranks[:seat], *ranks[seat + 1 :])


def tallies(results: Sequence[LoggedResult]) -> dict[str, Tally]:
    """By bot; a bot that has several seats has their mean."""
    points: dict[str, list[float]] = {}
    shares: dict[str, list[float]] = {}
    for result in results:
        for bot, gained, share in zip(result.bots, counted_points(result), scores(result), strict=True):
            points.setdefault(bot, []).append(gained)
            shares.setdefault(bot, []).append(share)
    return {bot: Tally(_mean(points[bot]), _mean(shares[bot])) for bot in points}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
