"""Seasons of bots whose true strength is known, with points in which the deal has a known part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import ScheduledMatch

SPREAD = 10.0
"""The standard deviation of a match's points."""
DEAL_SHARE = 0.5
"""The part of their variance that the deal gives to a seat."""
PAR_ERROR = 0.5
"""How far par is from what the deal gives, as a part of that."""
SCALE = 100
"""Points are whole numbers; so many make one of them, so that nothing hangs on rounding."""


def season(
    matches: Sequence[ScheduledMatch], strengths: Mapping[str, float], chance: Random
) -> list[LoggedResult]:
    """A bot makes its strength less the others' mean, plus what deal and chance give to its seat."""
    deals: dict[str, list[float]] = {}
    results = []
    for seq, match in enumerate(matches, 1):
        deal = match.deal.set if match.deal else match.id
        size = len(match.bots)
        if deal not in deals:
            deals[deal] = [chance.gauss(0, SPREAD * DEAL_SHARE**0.5) for _ in range(size)]
        luck = deals[deal]
        points = tuple(
            round(SCALE * (expected(bot, match.bots, strengths) + luck[seat] + noise(chance)))
            for seat, bot in enumerate(match.bots)
        )
        ranks = tuple(1 + sum(other > own for other in points) for own in points)
        par = tuple(SCALE * (each + PAR_ERROR * chance.gauss(0, SPREAD * DEAL_SHARE**0.5)) for each in luck)
        results.append(
            LoggedResult(
                seq, f"matches/{seq}", match.bots, points, ranks, ("COMPLETED",) * size, "",
                deal if match.deal else "", par,
            )
        )  # fmt: skip
    return results


def expected(bot: str, bots: Sequence[str], strengths: Mapping[str, float]) -> float:
    """What it makes at this table in the long run."""
    others = [strengths[other] for other in bots if other != bot]
    return strengths[bot] - sum(others) / len(others)


def noise(chance: Random) -> float:
    return chance.gauss(0, SPREAD * (1 - DEAL_SHARE) ** 0.5)


def true_mean(bot: str, matches: Sequence[ScheduledMatch], strengths: Mapping[str, float]) -> float:
    """Over the matches of the schedule."""
    means = [expected(bot, match.bots, strengths) for match in matches if bot in match.bots]
    return SCALE * sum(means) / len(means)
