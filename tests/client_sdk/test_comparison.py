"""The intervals that hold while one looks, and the verdicts that follow from them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from seatwise.anytime_mean import BoundedAnytimeMean
from seatwise.local.comparison import ComparisonVerdict, RunningComparison, StopRule
from seatwise.local.deal_block import BlockPlan, PlayedBlock

Draw = Callable[[random.Random], float]


def normal(chance: random.Random) -> float:
    return round(chance.gauss(0, 15))


def skewed(chance: random.Random) -> float:
    """Mean 0: mostly a small loss, now and then a large gain."""
    return 90.0 if chance.random() < 0.1 else -10.0


UNITS: dict[str, Draw] = {"normal": normal, "skewed": skewed}


@pytest.mark.parametrize("name", UNITS)
def test_equal_versions_are_told_apart_in_few_comparisons_however_often_one_looks(name: str) -> None:
    """At most 5 % may err over all looks. A hundred comparisons of 300 deals, looked at after each eighth."""
    chance, wrong = random.Random(7), 0
    for _ in range(100):
        sequence = BoundedAnytimeMean(100.0)
        for number in range(1, 301):
            sequence.add_number(UNITS[name](chance))
            if number % 8 == 0 and sequence.find_side(0.0):
                wrong += 1
                break
    assert wrong <= 5


def test_looking_at_a_plain_interval_as_often_would_err_far_more() -> None:
    """The test above can fail: the usual 95 % interval of a fixed size does not survive so many looks."""
    chance, wrong = random.Random(7), 0
    for _ in range(100):
        total = squares = 0.0
        for number in range(1, 301):
            unit = normal(chance)
            total, squares = total + unit, squares + unit * unit
            if number % 8 == 0 and abs(total) > 1.96 * squares**0.5:
                wrong += 1
                break
    assert wrong > 15


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("mean", [3.0, -3.0])
def test_the_interval_holds_the_mean_and_grows_narrow(name: str, mean: float) -> None:
    chance, sequence = random.Random(3), BoundedAnytimeMean(100.0)
    for _ in range(4000):
        sequence.add_number(UNITS[name](chance) + mean)
    low, high = sequence.interval()
    assert low < mean < high
    assert high - low < 5.0
    assert sequence.find_side(0.0) == (1 if mean > 0 else -1)
    assert (sequence.find_side(low - 0.01), sequence.find_side(high + 0.01)) == (1, -1)
    assert not sequence.find_side(mean)


def test_numbers_beyond_the_bound_are_cut_and_counted() -> None:
    sequence = BoundedAnytimeMean(10.0)
    for number in (5.0, 25.0, -11.0):
        sequence.add_number(number)
    assert (sequence.count, sequence.cut) == (3, 2)
    assert sequence.mean == pytest.approx(5 / 3)
    assert sequence.interval() == (-10.0, 10.0)


# Verdicts

PLAN = BlockPlan("ugo", ("random", "greedy"), ("old", "new"), {}, "seed")


def run_to_the_end(rule: StopRule, draw: Draw, seed: int = 1) -> RunningComparison:
    chance, running = random.Random(seed), RunningComparison(PLAN, rule)
    while not running.is_over:
        running.add_block(PlayedBlock(draw(chance), (2.0, 4.0), (2, 2), (0, 1)))
    return running


@pytest.mark.parametrize(
    ("shift", "margin", "verdict"),
    [
        (8.0, 1.0, ComparisonVerdict.BETTER),
        (-8.0, 1.0, ComparisonVerdict.WORSE),
        (0.0, 6.0, ComparisonVerdict.LEVEL),
    ],
)
def test_it_ends_by_itself_with_a_verdict(shift: float, margin: float, verdict: ComparisonVerdict) -> None:
    found = run_to_the_end(StopRule(margin=margin), lambda chance: normal(chance) + shift).report()
    assert found.verdict is verdict
    assert found.matches == 2 * found.deals < 20_000
    assert found.thought_ms == (1.0, 2.0)
    assert found.failures == (0, found.deals)


def test_it_ends_undecided_at_the_limit_and_says_so() -> None:
    found = run_to_the_end(StopRule(most_matches=100), normal).report()
    assert (found.verdict, found.matches) == (ComparisonVerdict.OPEN, 100)
    assert found.why == "the limit of 100 matches is reached; raise it with --matches"


def test_a_voided_deal_counts_for_neither() -> None:
    running = RunningComparison(PLAN, StopRule())
    running.add_block(PlayedBlock(None, (0, 0), (0, 0), (0, 0)))
    running.add_block(PlayedBlock(4.0, (0, 0), (0, 0), (0, 0)))
    found = running.report()
    assert (found.deals, found.voided, found.mean) == (2, 1, 4.0)
