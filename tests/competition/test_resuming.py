"""Whatever a schedule is, a runner may be killed at any point: no match is due twice, and the season comes out the same."""

from __future__ import annotations

from random import Random

import pytest

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.ab_test import ABTest
from seatwise_server.competition.schedules.knockout import Knockout
from seatwise_server.competition.schedules.round_robin import Gauntlet, RoundRobin
from seatwise_server.competition.schedules.schedule import Duplicate, Schedule, ScheduledMatch, SoFar
from seatwise_server.competition.schedules.swiss import Swiss
from seatwise_server.competition.statistics.anytime_test import AnytimeTest

BOTS = tuple(f"bots/b{number}/versions/1" for number in range(11))
SCHEDULES: list[Schedule] = [
    RoundRobin(BOTS[:5], 2),
    RoundRobin(BOTS[:8], 4, 3),
    RoundRobin(BOTS[:4], 3, duplicate=Duplicate.ROTATION),
    Swiss(BOTS, 4),
    Swiss(BOTS, 3, 4, Duplicate.ROTATION),
    Knockout(BOTS),
    Knockout(BOTS, 4, 2, deals=2, duplicate=Duplicate.TRAVELLING),
    Gauntlet(BOTS[:2], BOTS[2:], 3),
    ABTest(BOTS[0], BOTS[1], test=AnytimeTest(least_points=8.0), most_units=60),
]


def outcome(match: ScheduledMatch) -> LoggedResult | None:
    """What comes of it follows from its id alone; now and then it is void, or somebody forfeits, or all are level."""
    chance = Random(match.id)
    if chance.random() < 0.15:
        return None
    points = tuple(chance.choice((0, 3, 3, 9)) for _ in match.bots)
    left = tuple("TIMED_OUT" if chance.random() < 0.1 else "COMPLETED" for _ in match.bots)
    merits = [(ending == "COMPLETED", own) for own, ending in zip(points, left, strict=True)]
    ranks = tuple(1 + sum(other > own for other in merits) for own in merits)
    return LoggedResult(1, f"matches/{match.id}", match.bots, points, ranks, left)


def season(schedule: Schedule, chance: Random) -> tuple[dict[str, ScheduledMatch], SoFar]:
    """Matches end in any order; after each the runner is killed, and asks again."""
    played: dict[str, ScheduledMatch] = {}
    results: dict[str, LoggedResult] = {}
    voids: set[str] = set()
    while due := schedule.due_matches(SoFar(results, frozenset(voids))):
        assert len({match.id for match in due}) == len(due)
        match = chance.choice(due)
        assert match.id not in played
        played[match.id] = match
        if (result := outcome(match)) is None:
            voids.add(match.id)
        else:
            results[match.id] = result
    return played, SoFar(results, frozenset(voids))


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: type(schedule).__name__)
def test_in_whatever_order_matches_end_the_season_is_the_same(schedule: Schedule) -> None:
    first, so_far = season(schedule, Random(1))
    for seed in (2, 3):
        again, other = season(schedule, Random(seed))
        if isinstance(schedule, ABTest):  # units beyond the verdict may or may not have begun
            assert schedule.current_verdict(so_far) is schedule.current_verdict(other)
        else:
            assert again == first
    assert schedule.expected_matches(so_far) >= len(so_far.results)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: type(schedule).__name__)
def test_matches_of_a_deal_are_numbered_without_a_gap(schedule: Schedule) -> None:
    played, _ = season(schedule, Random(1))
    sets: dict[str, set[int]] = {}
    sizes: dict[str, set[tuple[int, int]]] = {}
    for match in played.values():
        if match.deal:
            sets.setdefault(match.deal.set, set()).add(match.deal.number)
            sizes.setdefault(match.deal.set, set()).add((match.deal.size, len(match.bots)))
    assert all(len(kinds) == 1 for kinds in sizes.values())
    for name, numbers in sets.items():
        [(size, _)] = sizes[name]
        assert numbers <= set(range(1, size + 1))
        assert isinstance(schedule, ABTest) or len(numbers) == size
