"""Differences while a season runs: counted in the order of the schedule, by deals or by rounds."""

from __future__ import annotations

import math

import pytest

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.statistics.season_statistics import follow_differences, order_of_match


def result(bots: str, *points: int, deal: str = "") -> LoggedResult:
    ranks = tuple(1 + sum(other > own for other in points) for own in points)
    return LoggedResult(
        1, f"matches/{bots}{points}", tuple(bots), points, ranks, ("COMPLETED",) * len(points), deal=deal
    )


def test_matches_of_one_deal_are_one_number() -> None:
    results = {
        "r1-t1-s1": result("ab", 5, 1, deal="d1"),
        "r1-t1-s2": result("ba", 2, 4, deal="d1"),
        "r2-t1-s1": result("ab", 7, 1, deal="d2"),
    }
    found = follow_differences(results, ())
    assert (found["a", "b"].count, found["a", "b"].mean) == (2, pytest.approx((3 + 6) / 2))
    assert found["b", "a"].mean == -found["a", "b"].mean


def test_a_round_with_an_open_match_does_not_count_yet() -> None:
    """Else the matches that end early would come before those that take long."""
    results = {f"r{number}-t1": result("ab", number, 0) for number in (1, 3, 2, 10)}
    assert follow_differences(results, ())["a", "b"].count == 4
    assert follow_differences(results, ["r3-t2"])["a", "b"].count == 2
    assert follow_differences(results, ["r1-t1.2"]) == {}


def test_a_round_is_one_number_where_pairings_follow_results() -> None:
    results = {"r1-t1": result("ab", 5, 1), "r1-t2": result("ab", 1, 1), "r2-t1": result("ab", 3, 0)}
    assert follow_differences(results, (), by_round=True)["a", "b"].count == 2


def test_bots_on_two_tables_of_a_deal_are_compared() -> None:
    results = {"r1-t1": result("ab", 5, 1, deal="d"), "r1-t2": result("cd", 2, 0, deal="d")}
    assert follow_differences(results, ())["a", "d"].mean == 5
    assert follow_differences(results, ())["a", "d"].interval() == (-math.inf, math.inf)


def test_the_order_is_that_of_numbers() -> None:
    assert sorted(["r10-t1", "r2-t10", "r2-t9.2", "r2-t9"], key=order_of_match) == [
        "r2-t9", "r2-t9.2", "r2-t10", "r10-t1",
    ]  # fmt: skip
