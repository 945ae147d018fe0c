"""A against B with evidence that holds at every unit, however the units are distributed."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest

from seatwise.anytime_mean import LEAST_OTHER_NUMBERS
from seatwise_server.competition.statistics.anytime_test import (
    LEAST_UNITS,
    AnytimeTest,
    TrialVerdict,
    summarize_differences,
)


def test_the_first_verdict_stays() -> None:
    differences = [5.0, 6.0] * 50
    ratios, verdict = AnytimeTest().run_test([*differences, *[-50.0] * 100])
    assert verdict is TrialVerdict.H1
    assert len(ratios) == LEAST_UNITS


def test_nothing_is_decided_before_enough_units_are_played() -> None:
    assert len(AnytimeTest(least_units=130).run_test([5.0, 6.0] * 80)[0]) == 130
    assert len(AnytimeTest(least_units=16).run_test([5.0, 6.0] * 80)[0]) == LEAST_UNITS


def test_equal_differences_are_too_few_different_deals() -> None:
    """They only show that another difference is rare."""
    equal = [2.0] * 500
    assert AnytimeTest().first_verdict(equal) is TrialVerdict.OPEN
    assert AnytimeTest().has_too_few(equal)
    others = [*equal, *range(3, 3 + LEAST_OTHER_NUMBERS)]
    assert AnytimeTest().first_verdict(others) is TrialVerdict.H1
    assert not AnytimeTest().has_too_few(others)


def test_the_evidence_is_what_decides() -> None:
    chance = Random(4)
    differences = [chance.gauss(2, 9) for _ in range(400)]
    test = AnytimeTest()
    ratios, verdict = test.run_test(differences)
    course = test.trace_evidence(differences[: len(ratios)])
    assert verdict is TrialVerdict.H1
    assert course[-1].for_h1 >= math.log(20) > max(each.for_h1 for each in course[LEAST_UNITS:-1])
    assert summarize_differences(differences).count == 400


def skewed(chance: Random) -> float:
    """Of skewness -2: seldom a large loss."""
    return 1 - chance.expovariate(1)


def careless(chance: Random) -> float:
    return chance.gauss(0, 0.6) - 1.5 * (chance.random() < 0.2) + 0.3


def errors(
    test: AnytimeTest, draw: Callable[[Random], float], truth: float, wrong: TrialVerdict, tests: int
) -> float:
    chance = Random(11)
    found = [test.first_verdict(truth + 9 * draw(chance) for _ in range(600)) for _ in range(tests)]
    return found.count(wrong) / tests


@pytest.mark.parametrize(
    ("loss", "share", "spread"),
    [(28.5, 0.05, 0), (27, 0.1, 0), (27, 0.1, 3), (27, 0.1, 9), (28.5, 0.05, 1), (28.5, 0.05, 3), (29.4, 0.02, 0), (29.4, 0.02, 3)],
)  # fmt: skip
def test_rare_losses_are_seldom_taken_for_a_better_bot(loss: float, share: float, spread: float) -> None:
    """Units of a small gain, a rare loss and normal luck, whose mean is 0. Sixteen units decided 45 of 100 such tests wrongly."""
    gain, tests = loss * share / (1 - share), 120
    chance = Random(f"{loss}/{share}/{spread}")

    def draw() -> float:
        return (-loss if chance.random() < share else gain) + chance.gauss(0, spread)

    found = [AnytimeTest().first_verdict(draw() for _ in range(600)) for _ in range(tests)]
    assert found.count(TrialVerdict.H1) / tests <= 0.06


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "draw", [lambda chance: chance.gauss(0, 1), skewed, careless, lambda chance: -skewed(chance)],
    ids=["normal", "skewness -2", "careless", "skewness 2"],
)  # fmt: skip
@pytest.mark.parametrize(("truth", "wrong"), [(0.0, TrialVerdict.H1), (2.0, TrialVerdict.H0)])
def test_errors_are_as_rare_as_was_asked_for(
    draw: Callable[[Random], float], truth: float, wrong: TrialVerdict
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"least_points": 0.0}, "least_points: must be between 0 and 1000"),
        ({"least_points": float("nan")}, "least_points: must be between 0 and 1000"),
        ({"alpha": 0.5}, "alpha: must be between 0 and 0.5"),
        ({"beta": 0.0}, "beta: must be between 0 and 0.5"),
    ],
)
def test_settings_that_make_no_test_are_named(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AnytimeTest(**settings)  # type: ignore[arg-type]
