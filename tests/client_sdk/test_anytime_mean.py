"""An interval for a mean that may be looked at after every number: published values, and its error in simulations."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from statistics import fmean, pstdev

import pytest

from seatwise.anytime_mean import (
    LEAST_NUMBERS,
    AnytimeMean,
    anytime_quantile,
    log_normal_mixture,
    normal_mixture_bound,
)

PUBLISHED_TIME = 100 / (2 * math.log(10) + math.log(1 + 2 * math.log(10)))
"""The mixture that confseq takes for `v_opt=100` and `alpha_opt=0.05` on one side."""


def sequence_of(numbers: list[float]) -> AnytimeMean:
    found = AnytimeMean()
    for number in numbers:
        found.add_number(number)
    return found


def test_the_mixture_has_the_published_values() -> None:
    """Of the tests of confseq (Howard and others, 2021): `MixtureTest.TestOneSidedNormalMixture`."""
    assert log_normal_mixture(10, 100, PUBLISHED_TIME) == pytest.approx(-0.06502391, abs=1e-7)
    assert normal_mixture_bound(100, PUBLISHED_TIME, 0.05) == pytest.approx(27.66071, abs=1e-5)


def test_thin_tails_have_the_same_value_by_both_formulas() -> None:
    near = [
        log_normal_mixture(total, 1.0, 1.0)
        for total in (-30 * math.sqrt(2) + 1e-6, -30 * math.sqrt(2) - 1e-6)
    ]
    assert near[0] == pytest.approx(near[1], rel=1e-4)
    assert math.isfinite(log_normal_mixture(-1e4, 1.0, 1.0))


def test_moments_are_those_of_the_numbers() -> None:
    chance = Random(1)
    numbers = [chance.expovariate(1) for _ in range(100)]
    found = sequence_of(numbers)
    mean, deviation = fmean(numbers), pstdev(numbers)
    assert (found.mean, found.deviation) == (pytest.approx(mean), pytest.approx(deviation))
    assert found._skewness() == pytest.approx(fmean((each - mean) ** 3 for each in numbers) / deviation**3)


@pytest.mark.parametrize("lean", [-1, 0, 1])
def test_the_interval_has_the_means_that_are_not_excluded(lean: int) -> None:
    chance = Random(2)
    draw = (lambda: chance.gauss(0, 3)) if not lean else (lambda: lean * chance.expovariate(0.3))
    found = sequence_of([draw() for _ in range(60)])
    low, high = found.interval()
    assert low < found.mean < high
    for end, side in ((low, 1), (high, -1)):
        assert found.find_side(end - side * 1e-6) == side
        assert found.find_side(end + side * 1e-6) == 0


def test_few_numbers_claim_nothing() -> None:
    found = sequence_of([5.0, 6.0] * (LEAST_NUMBERS // 2 - 1))
    assert found.interval() == (-math.inf, math.inf)
    assert (found.find_side(0.0), found.log_evidence(0.0)) == (0, 0.0)
    assert (AnytimeMean().mean, AnytimeMean().deviation) == (0.0, 0.0)


def test_equal_numbers_have_no_spread() -> None:
    found = sequence_of([2.0] * 40)
    assert found.interval() == (2.0, 2.0)
    assert (found.find_side(1.0), found.find_side(2.0), found.find_side(3.0)) == (1, 0, -1)


def test_skewness_never_adds_evidence() -> None:
    """Rare large numbers: they speak against a mean below, and say little against one above."""
    chance = Random(3)
    numbers = [1 - chance.expovariate(1) for _ in range(50)]
    found, mirrored = sequence_of(numbers), sequence_of([-each for each in numbers])
    assert found.log_evidence(-0.5) == pytest.approx(mirrored.log_evidence(0.5, -1))
    low, high = found.interval()
    assert found.mean - low > high - found.mean


def test_an_interval_of_a_fit_is_wider_than_that_of_one_look() -> None:
    assert all(2.5 < anytime_quantile(information) < 4.5 for information in (0.5, 1, 4, 16, 64))
    assert anytime_quantile(4.0) == pytest.approx(
        normal_mixture_bound(128, 32, 0.025) / math.sqrt(128), rel=1e-9
    )


# Simulations


def skewed(shape: float) -> Callable[[Random], float]:
    """Of skewness -2 / sqrt(shape), with a long tail below."""
    return lambda chance: shape - chance.gammavariate(shape, 1)


def heavy(chance: Random) -> float:
    """Student's t with three degrees of freedom."""
    return chance.gauss(0, 1) / math.sqrt(chance.gammavariate(1.5, 2 / 3))


def careless(chance: Random) -> float:
    """In one unit of five, the other bot gains from a careless card."""
    return chance.gauss(0, 0.6) - 1.5 * (chance.random() < 0.2) + 0.3


def correlated(chance: Random) -> float:
    """A block of four matches whose neighbours are correlated 0.2: one number."""
    before = total = chance.gauss(0, 1)
    for _ in range(3):
        before = 0.2 * before + math.sqrt(1 - 0.04) * chance.gauss(0, 1)
        total += before
    return total / 4


UNITS: dict[str, Callable[[Random], float]] = {
    "normal": lambda chance: chance.gauss(0, 1),
    "skewness -1": skewed(4),
    "skewness -2": skewed(1),
    "heavy tails": heavy,
    "careless": careless,
    "correlated neighbours": correlated,
}


def share_of_errors(draw: Callable[[Random], float], sequences: int, numbers: int) -> tuple[float, float]:
    """By how many sequences, whose true mean is 0, a claim is wrong at some look: on one side at 5 %, and of an interval."""
    chance, one_sided, either = Random(7), 0, 0
    for _ in range(sequences):
        found, above, below = AnytimeMean(), 0.0, 0.0
        for _ in range(numbers):
            found.add_number(draw(chance))
            above = max(above, found.log_evidence(0.0))
            below = max(below, found.log_evidence(0.0, -1))
        one_sided += above >= math.log(20)
        either += max(above, below) >= math.log(40)
    return one_sided / sequences, either / sequences


@pytest.mark.parametrize("name", ["normal", "skewness -2"])
def test_claims_are_rarely_wrong_at_any_look(name: str) -> None:
    """Of 150 sequences chance alone would leave 8 % of those that err in 5 %; an interval of one look errs in 30 %."""
    assert max(share_of_errors(UNITS[name], 150, 300)) <= 0.08


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", UNITS)
def test_claims_are_wrong_in_five_of_a_hundred_sequences_at_most(name: str) -> None:
    found = share_of_errors(UNITS[name], 2000, 1000)
    print(f"{name}: one side {100 * found[0]:.1f} %, interval {100 * found[1]:.1f} %")
    assert max(found) <= 0.05


def test_a_difference_is_found_for_less_than_twice_the_numbers_of_a_fixed_sample() -> None:
    """A fixed sample of 7.85 times the squared deviation finds a difference in four of five seasons."""
    chance, deviation = Random(5), 9 / 2
    fixed, needed = 7.849 * deviation**2, []
    for _ in range(60):
        found = AnytimeMean()
        while found.find_side(0.0) == 0:
            found.add_number(chance.gauss(1, deviation))
        needed.append(found.count)
        assert found.find_side(0.0) == 1
    assert fmean(needed) <= 1.4 * fixed
    assert sorted(needed)[48] <= 2 * fixed
