"""Every 95 % interval of a season's statistics holds the truth in 93 to 97 of 100 seasons of bots whose strength is known."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from statistics import NormalDist, fmean

import pytest
from matches.effort import FULL
from seasons.simulated_points import DEAL_SHARE, SCALE, SPREAD, expected, season, true_mean

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.round_robin import RoundRobin
from seatwise_server.competition.schedules.schedule import Duplicate, ScheduledMatch
from seatwise_server.competition.statistics.luck_correction import (
    CorrectedPoints,
    correct_by_measures,
    correct_by_other_tables,
    uncorrected_points,
)
from seatwise_server.competition.statistics.season_statistics import (
    Estimate,
    compare_pairs,
    deal_name,
    estimate_differences,
    estimate_entrant_means,
)

COEFFICIENT = 0.8
LEFT_TO_OTHERS = 0.2
"""The part of the variance that par leaves and that other tables share."""


def strengths(count: int, spread: float) -> dict[str, float]:
    return {f"b{number}": spread * (2 * number / (count - 1) - 1) for number in range(count)}


def corrections(
    results: Sequence[LoggedResult], duplicate: Duplicate
) -> Iterator[tuple[str, CorrectedPoints]]:
    yield "plain", uncorrected_points(results)
    measures = [[result.par for result in results], [tuple(map(blur, result.par)) for result in results]]
    by_par = correct_by_measures(results, measures[:1], [COEFFICIENT])
    yield "par", by_par
    yield (
        "two measures",
        correct_by_measures(results, measures, (0.2, 0.7)),
    )
    if duplicate is Duplicate.TRAVELLING:
        yield "other tables", correct_by_other_tables(results, uncorrected_points(results), DEAL_SHARE)
        yield "both", correct_by_other_tables(results, by_par, LEFT_TO_OTHERS)


def blur(par: float) -> float:
    """A second measure of the luck: a function of par, so that the same deal has the same one."""
    return par + SCALE * Random(par).gauss(0, 0.5 * SPREAD)


def true_differences(
    matches: Sequence[ScheduledMatch], strength: Mapping[str, float]
) -> dict[tuple[str, str], float]:
    """Deal by deal where both play it."""
    of_deal: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for match in matches:
        for bot in match.bots:
            deal = match.deal.set if match.deal else match.id
            of_deal[deal][bot].append(SCALE * expected(bot, match.bots, strength))
    return {
        (bot, other): fmean(
            fmean(of[bot]) - fmean(of[other]) for of in of_deal.values() if bot in of and other in of
        )
        for bot in strength
        for other in strength
        if bot < other
    }


def true_shares(
    matches: Sequence[ScheduledMatch], strength: Mapping[str, float]
) -> dict[tuple[str, str], float]:
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for match in matches:
        means = {bot: expected(bot, match.bots, strength) for bot in match.bots}
        for bot in means:
            for other in means:
                if bot < other:
                    ahead = NormalDist(sigma=SPREAD * 2**0.5).cdf(means[bot] - means[other])
                    shares[bot, other].append(ahead)
    return {pair: fmean(values) for pair, values in shares.items()}


def covered(
    bots: int, size: int, rounds: int, duplicate: Duplicate, spread: float, seasons: int
) -> dict[str, float]:
    """By kind of interval, how many of them hold the truth."""
    strength = strengths(bots, spread)
    matches = RoundRobin(tuple(strength), size, rounds, duplicate).all_matches()
    means = {bot: true_mean(bot, matches, strength) for bot in strength}
    differences, shares = true_differences(matches, strength), true_shares(matches, strength)
    chance = Random(f"{bots}/{size}/{rounds}/{duplicate}/{spread}")
    held: Counter[str] = Counter()
    shown: Counter[str] = Counter()

    def look(kind: str, estimate: Estimate, truth: float) -> None:
        held[kind] += estimate.low <= truth <= estimate.high
        shown[kind] += 1

    for _ in range(seasons):
        results = season(matches, strength, chance)
        for name, points in corrections(results, duplicate):
            for bot, estimate in estimate_entrant_means(results, points).items():
                look(f"mean, {name}", estimate, means[bot])
            found = estimate_differences(results, points)
            for pair, truth in differences.items():
                look(f"difference, {name}", found[pair], truth)
        found_pairs = compare_pairs(results)
        for pair, truth in shares.items():
            look("share", found_pairs[pair].ahead, truth)
    return {kind: held[kind] / shown[kind] for kind in shown}


SEASONS = [
    (8, 4, 28, Duplicate.TRAVELLING, 3.0),
    (8, 4, 28, Duplicate.NONE, 3.0),
    (4, 4, 24, Duplicate.ROTATION, 3.0),
]
MORE_SEASONS = [
    *SEASONS,
    (6, 3, 20, Duplicate.TRAVELLING, 3.0),
    (4, 2, 60, Duplicate.ROTATION, 2.0),
    (8, 4, 28, Duplicate.TRAVELLING, 15.0),  # so unequal that opponents matter more than luck
    (8, 4, 56, Duplicate.NONE, 15.0),
]


@pytest.mark.sampled
@pytest.mark.parametrize("kind", SEASONS if FULL else SEASONS[-1:], ids=str)
@pytest.mark.slow
def test_intervals_hold_the_truth(kind: tuple[int, int, int, Duplicate, float]) -> None:
    """A hundred and twenty seasons cannot tell 0.93 from 0.92; a thousand can, see below."""
    found = covered(*kind, seasons=120)
    assert all(0.915 <= part <= 0.985 for part in found.values()), found


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", MORE_SEASONS, ids=str)
def test_intervals_hold_the_truth_in_a_thousand_seasons(kind: tuple[int, int, int, Duplicate, float]) -> None:
    found = covered(*kind, seasons=1000)
    assert all(0.93 <= part <= 0.97 for part in found.values()), found


def test_a_season_without_sets_has_a_deal_for_each_match() -> None:
    matches = RoundRobin(("a", "b"), 2, 3, Duplicate.NONE).all_matches()
    results = season(matches, {"a": 0, "b": 0}, Random(1))
    assert len({deal_name(result) for result in results}) == 3
