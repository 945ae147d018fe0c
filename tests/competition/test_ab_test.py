"""A against B: played in units, weighed in order, over as soon as there is a verdict."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.ab_test import ABTest
from seatwise_server.competition.schedules.schedule import BadSchedule, Duplicate, ScheduledMatch, SoFar
from seatwise_server.competition.statistics.anytime_test import AnytimeTest, TrialVerdict

A, B = "bots/a/versions/1", "bots/b/versions/1"


def played(match: ScheduledMatch, ahead: int = 3) -> LoggedResult:
    """A makes so many more, and a little luck of the deal."""
    luck = Random(match.id).randrange(5)
    points = tuple(10 + luck + ahead * (bot == A) for bot in match.bots)
    ranks = tuple(1 + sum(other > own for other in points) for own in points)
    return LoggedResult(1, f"matches/{match.id}", match.bots, points, ranks, ("COMPLETED",) * len(points))


def season(plan: ABTest, ahead: int) -> dict[str, LoggedResult]:
    results: dict[str, LoggedResult] = {}
    while due := plan.due_matches(SoFar(results)):
        results |= {match.id: played(match, ahead + match.round % 3 - 1) for match in due}
    return results


@pytest.mark.parametrize("size", [2, 3, 4])
def test_in_a_unit_both_have_every_seat_equally_often(size: int) -> None:
    plan = ABTest(A, B, size, units_at_once=1)
    counts = Counter(
        (bot, seat) for match in plan.due_matches(SoFar()) for seat, bot in enumerate(match.bots)
    )
    assert len(set(counts.values())) == 1
    assert len(counts) == 2 * size


def test_a_unit_is_played_on_one_deal() -> None:
    first, second = ABTest(A, B, units_at_once=1).due_matches(SoFar())
    assert first.deal
    assert second.deal
    assert first.deal.set == second.deal.set
    assert (first.bots, second.bots) == ((A, B), (B, A))


@pytest.mark.parametrize("duplicate", [Duplicate.NONE, Duplicate.TRAVELLING])
def test_without_a_rotation_nobody_meets_a_deal_twice(duplicate: Duplicate) -> None:
    assert all(match.deal is None for match in ABTest(A, B, duplicate=duplicate).due_matches(SoFar()))


def test_the_difference_of_a_unit_is_that_of_mean_points() -> None:
    plan = ABTest(A, B, 4)
    results = {match.id: played(match) for match in plan.due_matches(SoFar())}
    assert plan.unit_differences(SoFar(results)) == (3.0,) * 8


def test_it_is_over_when_there_is_a_verdict() -> None:
    plan = ABTest(A, B, test=AnytimeTest(least_points=2.0))
    for ahead, verdict in ((4, TrialVerdict.H1), (-1, TrialVerdict.H0)):
        results = season(plan, ahead)
        assert plan.current_verdict(SoFar(results)) is verdict
        assert len(results) <= 2 * (110 + plan.units_at_once)
        assert plan.expected_matches(SoFar(results)) == len(results)


def test_it_is_over_after_the_last_unit_too() -> None:
    plan = ABTest(A, B, most_units=10)
    results = season(plan, 1)
    assert len(results) == plan.expected_matches(SoFar()) == 20
    assert plan.current_verdict(SoFar(results)) is TrialVerdict.OPEN


def test_a_unit_that_ended_early_waits_for_those_before_it() -> None:
    plan = ABTest(A, B)
    late = [match for match in plan.due_matches(SoFar()) if match.round > 1]
    assert plan.unit_differences(SoFar({match.id: played(match) for match in late})) == ()


def test_a_unit_that_was_given_up_is_left_out() -> None:
    plan = ABTest(A, B, units_at_once=2)
    results = {match.id: played(match) for match in plan.due_matches(SoFar()) if match.id != "u1-s1"}
    so_far = SoFar(results, ["u1-s1", "u1-s1.2", "u1-s1.3"])
    assert len(plan.unit_differences(so_far)) == 1


def test_settings_that_make_no_test_are_named() -> None:
    with pytest.raises(BadSchedule, match=r"entrants: bots/a/versions/1 is among them twice"):
        ABTest(A, A)
    with pytest.raises(BadSchedule, match=r"units_at_once: must be 1 or more, not 0"):
        ABTest(A, B, units_at_once=0)
