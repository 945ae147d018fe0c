"""A against B with evidence that holds at every unit, however the units are distributed."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest

from seatwise_server.competition.statistics.anytime_test import AnytimeTest, summarize_differences
from seatwise_server.competition.statistics.sprt import PointsTest, SprtVerdict


def test_the_first_verdict_stays() -> None:
    differences = [5.0, 6.0] * 20
    ratios, verdict = AnytimeTest().run_test([*differences, *[-50.0] * 100])
    assert verdict is SprtVerdict.H1
    assert len(ratios) == 16


def test_nothing_is_decided_before_enough_units_are_played() -> None:
    assert len(AnytimeTest(least_units=30).run_test([5.0, 6.0] * 20)[0]) == 30
    assert AnytimeTest().first_verdict([5.0] * 15) is SprtVerdict.OPEN


def test_equal_differences_do_not_break_the_test() -> None:
    assert AnytimeTest().first_verdict([2.0] * 50) is SprtVerdict.H1
    assert AnytimeTest().first_verdict([0.0] * 50) is SprtVerdict.H0
    assert AnytimeTest().first_verdict([-1.0] * 50) is SprtVerdict.H0


def test_the_evidence_is_what_decides() -> None:
    chance = Random(4)
    differences = [chance.gauss(2, 9) for _ in range(400)]
    test = AnytimeTest()
    ratios, verdict = test.run_test(differences)
    course = test.trace_evidence(differences[: len(ratios)])
    assert verdict is SprtVerdict.H1
    assert course[-1].for_h1 >= math.log(20) > max(each.for_h1 for each in course[16:-1])
    assert summarize_differences(differences).count == 400


def skewed(chance: Random) -> float:
    """Of skewness -2: seldom a large loss."""
    return 1 - chance.expovariate(1)


def careless(chance: Random) -> float:
    return chance.gauss(0, 0.6) - 1.5 * (chance.random() < 0.2) + 0.3


def errors(
    test: PointsTest, draw: Callable[[Random], float], truth: float, wrong: SprtVerdict, tests: int
) -> float:
    chance = Random(11)
    found = [test.first_verdict(truth + 9 * draw(chance) for _ in range(600)) for _ in range(tests)]
    return found.count(wrong) / tests


def test_a_test_of_skewed_units_is_seldom_wrong() -> None:
    """By the likelihood ratio of normal units, 12 to 16 of 100 are."""
    assert errors(AnytimeTest(), skewed, 0.0, SprtVerdict.H1, 150) <= 0.08
    assert errors(PointsTest(), skewed, 0.0, SprtVerdict.H1, 150) >= 0.09


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "draw", [lambda chance: chance.gauss(0, 1), skewed, careless, lambda chance: -skewed(chance)],
    ids=["normal", "skewness -2", "careless", "skewness 2"],
)  # fmt: skip
@pytest.mark.parametrize(("truth", "wrong"), [(0.0, SprtVerdict.H1), (2.0, SprtVerdict.H0)])
def test_errors_are_as_rare_as_was_asked_for(
    draw: Callable[[Random], float], truth: float, wrong: SprtVerdict
) -> None:
    found = errors(AnytimeTest(), draw, truth, wrong, 1500)
    print(f"truth {truth}: {100 * found:.1f} %")
    assert found <= 0.05


@pytest.mark.slow
def test_units_until_a_verdict() -> None:
    """For docs/statistics.md: at a standard deviation of 9 points a unit. A fixed sample of the same errors takes 219."""
    for truth in (0.0, 1.0, 2.0):
        chance = Random(12)
        units = [
            len(AnytimeTest().run_test(chance.gauss(truth, 9) for _ in range(3000))[0]) for _ in range(400)
        ]
        print(f"true difference {truth}: {sum(units) / 400:.0f} units")
        assert sum(units) / 400 <= 1.8 * 219
