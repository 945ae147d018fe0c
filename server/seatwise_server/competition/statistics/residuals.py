"""Computes the part of a match's points that the strengths of the bots at the table do not explain.

Points count relative to the mean of their table, so neither the cards of the match nor a bot that is generous to
all has an effect. Where the par of every seat is known, it is subtracted first. Matches that a seat did not finish
are left out: a forfeit shows a fault, not a favour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.addition import add_up
from seatwise_server.competition.numeric.linalg import Vector, solve_system


@dataclass(frozen=True, slots=True)
class MatchResiduals:
    """The residuals of one match, by seat."""

    bots: tuple[str, ...]
    residuals: tuple[float, ...]
    """The unexplained points of each seat. They add up to 0."""
    deal: str
    """The name of the deal. A match whose deal is not shared has its own."""


def match_residuals(results: Iterable[LoggedResult]) -> list[MatchResiduals]:
    """Return the residuals of all matches that every seat finished, after a least-squares fit of the strengths."""
    played = [
        result for result in results if result.compares_bots and set(result.endings) == {Ending.COMPLETED}
    ]
    scores = [_center_points(result) for result in played]
    strength = _fit_point_strengths([result.bots for result in played], scores)
    return [
        MatchResiduals(
            result.bots,
            _subtract_strengths(score, [strength[bot] for bot in result.bots]),
            result.deal or result.match,
        )
        for result, score in zip(played, scores, strict=True)
    ]


def _center_points(result: LoggedResult) -> Vector:
    points = [
        point - par
        for point, par in zip(result.points, result.par or [0.0] * len(result.points), strict=True)
    ]
    return center_values(points)


def center_values(values: Sequence[float]) -> Vector:
    """Return each value minus their mean."""
    mean = add_up(values) / len(values)
    return [value - mean for value in values]


def _subtract_strengths(score: Vector, strengths: Vector) -> tuple[float, ...]:
    return tuple(own - expected for own, expected in zip(score, center_values(strengths), strict=True))


def _fit_point_strengths(tables: Sequence[tuple[str, ...]], scores: Sequence[Vector]) -> dict[str, float]:
    """Return the points that each bot makes more than the mean bot at the same table, by least squares over all matches."""
    names = sorted({bot for table in tables for bot in table})
    number = {bot: n for n, bot in enumerate(names)}
    scale, sums, pairs = [0.0] * len(names), [0.0] * len(names), Counter[tuple[int, int, int]]()
    for table, score in zip(tables, scores, strict=True):
        seats = sorted(number[bot] for bot in table)
        pairs.update((one, other, len(seats)) for one, other in combinations(seats, 2))
        for bot, own in zip(table, score, strict=True):
            scale[number[bot]] += 1 - 1 / len(seats)
            sums[number[bot]] += own

    def times(x: Vector) -> Vector:
        image = [by * value for by, value in zip(scale, x, strict=True)]
        for (one, other, size), count in pairs.items():
            image[one] -= count / size * x[other]
            image[other] -= count / size * x[one]
        return image

    return dict(zip(names, solve_system(times, scale, sums), strict=True)) if names else {}
