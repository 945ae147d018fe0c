"""Estimates differences of bots while a season runs, with intervals that hold however often somebody looks.

Intervals of `season_statistics` hold for one look, after the last match. Of pairs of equal bots, one in five would be told apart
at some time, if somebody looked after every ten matches.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import permutations

from seatwise.anytime_mean import AnytimeMean
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.addition import add_up
from seatwise_server.competition.standings.scoring import counted_points
from seatwise_server.competition.statistics.luck_correction import deal_name

PointsInUnit = dict[str, list[float]]
"""The points of each bot in the matches of one unit."""


def follow_differences(
    results: Mapping[str, LoggedResult], due: Collection[str], *, by_round: bool = False
) -> dict[tuple[str, str], AnytimeMean]:
    """Return by (bot, other) the mean points minus the other's, over the units that both have played.

    `results` come by the ids of the schedule, and `due` has the ids of matches that may yet be played. A unit is a deal, or with
    `by_round` a round, where pairings follow results. Only rounds before the first open one count, in their order: a
    match that ended early must not come before one that takes long.
    """
    found: dict[tuple[str, str], AnytimeMean] = defaultdict(AnytimeMean)
    for points in _list_units(results, due, by_round=by_round):
        means = {bot: add_up(own) / len(own) for bot, own in points.items()}
        for bot, other in permutations(means, 2):
            found[bot, other].add_number(means[bot] - means[other])
    return dict(found)


def _list_units(
    results: Mapping[str, LoggedResult], due: Collection[str], *, by_round: bool
) -> Iterator[PointsInUnit]:
    """Yield the points of each unit, in the order of the schedule."""
    first_open = min(map(order_of_match, due), default=())
    units: dict[str, PointsInUnit] = {}
    for match in sorted(results, key=order_of_match):
        round_number, *_ = order_of_match(match)
        if first_open and round_number >= first_open[0]:
            break
        result = results[match]
        unit = units.setdefault(str(round_number) if by_round else deal_name(result), defaultdict(list))
        for bot, points in zip(result.bots, counted_points(result), strict=True):
            unit[bot].append(points)
    yield from units.values()


def order_of_match(match: str) -> tuple[int, ...]:
    """Return the numbers in the id of a match, by which a schedule orders its matches: `r12-t3` is (12, 3)."""
    return tuple(map(int, re.findall(r"\d+", match)))
