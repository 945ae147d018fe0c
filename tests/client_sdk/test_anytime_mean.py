"""An interval for a mean that may be looked at after every number: published values, and its error in simulations."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from statistics import fmean, pstdev

import numpy as np
import pytest

from seatwise.anytime_mean import (
    LEAST_NUMBERS,
    PLANNED_LOOKS,
    PLANNED_QUANTILE,
    AnytimeMean,
    BoundedAnytimeMean,
    PlannedMean,
    _remove_skewness,
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


# The price of looking at every number


LIFT = 2 / 9
"""The true mean in standard deviations: 2 points a match, at 9 points a unit."""
NORMAL_SAMPLE = 7.849 / LIFT**2
"""The fixed sample that finds it in four of five seasons if the numbers are normal."""


class PartlyCorrected(AnytimeMean):
    """Takes out only a part of the skewness."""

    part = 1.0

    def _skewness(self) -> float:
        return self.part * super()._skewness()


class HalfCorrected(PartlyCorrected):
    part = 0.5


class Uncorrected(PartlyCorrected):
    part = 0.0


def fixed_score(found: AnytimeMean, mean: float, corrected: bool) -> float:
    """Student's statistic of a sample, with its skewness taken out or not."""
    ratio = (found.mean - mean) / found.deviation
    return math.sqrt(found.count) * (
        _remove_skewness(ratio, found._skewness(), found.count) if corrected else ratio
    )


def fixed_sample(draw: Callable[[Random], float], corrected: bool) -> tuple[int, float]:
    """The shortest sample that finds the lift in four of five, by one look at 2.5 % a side, and how often it then errs."""
    chance = Random(21)
    samples = [AnytimeMean() for _ in range(4000)]
    power = 0.0
    while power < 0.8:
        for _ in range(1 if samples[0].count >= 100 else 100):
            for sample in samples:
                sample.add_number(draw(chance))
        power = fmean(fixed_score(sample, -LIFT, corrected) > 1.97 for sample in samples)
    return samples[0].count, fmean(fixed_score(sample, 0.0, corrected) > 1.97 for sample in samples)


def numbers_needed(kind: type[AnytimeMean], draw: Callable[[Random], float]) -> list[int]:
    """After how many numbers each of 1,000 sequences leaves out 0, in order."""
    chance, needed = Random(22), []
    for _ in range(1000):
        found = kind()
        while found.log_evidence(0.0) < math.log(40):
            found.add_number(draw(chance) + LIFT)
        needed.append(found.count)
    return sorted(needed)


def of_unit_deviation(name: str) -> Callable[[Random], float]:
    chance = Random(23)
    deviation = {"normal": 1.0, "skewness -1": 2.0, "skewness -2": 1.0}.get(name)
    deviation = deviation or pstdev(UNITS[name](chance) for _ in range(200_000))
    return lambda chance: UNITS[name](chance) / deviation


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["normal", "skewness -1", "skewness -2", "careless"])
def test_the_price_beside_a_fixed_sample_that_keeps_its_promise(name: str) -> None:
    """For docs/statistics.md. Student's fixed sample errs too often upwards where the long tail is below."""
    draw = of_unit_deviation(name)
    student, corrected = fixed_sample(draw, False), fixed_sample(draw, True)
    needed = numbers_needed(AnytimeMean, draw)
    mean, late = fmean(needed), needed[800]
    print(
        f"{name}: Student {student[0]}, errs in {100 * student[1]:.1f} %; corrected {corrected[0]}, "
        f"errs in {100 * corrected[1]:.1f} %; at every look {mean:.0f} on average, {late} in four of five: "
        f"{mean / corrected[0]:.2f}, {late / corrected[0]:.2f} of corrected, {late / student[0]:.2f} of Student"
    )
    assert corrected[1] <= 0.035
    assert late <= 1.9 * corrected[0]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", [Uncorrected, HalfCorrected, AnytimeMean])
def test_less_correction_costs_less_and_errs_more(kind: type[AnytimeMean]) -> None:
    """For docs/statistics.md: why the whole skewness is taken out."""
    draw, wrong, chance = of_unit_deviation("skewness -2"), 0, Random(24)
    late = numbers_needed(kind, draw)[800]
    for _ in range(6000):
        found = kind()
        for _ in range(1000):
            found.add_number(draw(chance))
            if found.log_evidence(0.0) >= math.log(20):
                wrong += 1
                break
    print(
        f"{kind.__name__}: errs in {wrong / 60:.1f} %, {late} numbers, {late / NORMAL_SAMPLE:.2f} of {NORMAL_SAMPLE:.0f}"
    )
    assert kind is HalfCorrected or (wrong <= 300) == (kind is AnytimeMean)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_betting_with_a_bound_costs_more() -> None:
    """For docs/statistics.md: with the bound of 100 points that `seatwise compare` has, looking after every eighth number."""
    draw, chance, needed = of_unit_deviation("skewness -2"), Random(25), []
    for _ in range(100):
        found = BoundedAnytimeMean(100 / 9)
        while found.count % 8 or found.find_side(0.0) == 0:
            found.add_number(draw(chance) + LIFT)
        needed.append(found.count)
    late = sorted(needed)[80]
    print(f"betting: {fmean(needed):.0f} numbers on average, {late} in four of five")
    assert late > numbers_needed(AnytimeMean, draw)[800]


# Planned comparisons


def shares_that_go_on(quantile: float, units: float = 0.0, shift: float = 0.0) -> list[float]:
    """The parts of O'Brien and Fleming's tests that go on after each of ten looks, by numerical integration.

    The sum of ten standard normal steps, each moved by the shift of its units in standard errors, ends where it leaves a fixed band.
    Source: P. Armitage, C. K. McPherson, B. C. Rowe, "Repeated Significance Tests on Accumulating Data" (1969).
    """
    drift = shift * math.sqrt(units / PLANNED_LOOKS)
    edge = quantile * math.sqrt(PLANNED_LOOKS)
    grid, width = np.linspace(-edge, edge, 1001, retstep=True)
    weights = np.full(grid.size, width)
    weights[[0, -1]] /= 2
    step = np.exp(-((grid[:, None] - grid[None, :] - drift) ** 2) / 2) / math.sqrt(2 * math.pi)
    density = np.exp(-((grid - drift) ** 2) / 2) / math.sqrt(2 * math.pi)
    shares = []
    for _ in range(PLANNED_LOOKS):
        shares.append(float(weights @ density))
        density = step @ (weights * density)
    return shares


def test_ten_looks_have_the_published_constant_and_sizes() -> None:
    """2.087 errs in 5 % of tests. A difference of 2/9 deviations is found in 79 % by 163 units at most, 124 in the mean."""
    assert shares_that_go_on(PLANNED_QUANTILE)[-1] == pytest.approx(0.95, abs=1e-4)
    assert abs(shares_that_go_on(PLANNED_QUANTILE + 0.01)[-1] - 0.95) > 5e-4
    found = shares_that_go_on(PLANNED_QUANTILE, 163, 2 / 9)
    assert 1 - found[-1] == pytest.approx(0.794, abs=0.002)
    assert 16.3 * (1 + sum(found[:-1])) == pytest.approx(124, abs=1)


def plan_sequence(most: int, draw: Callable[[Random], float], chance: Random) -> tuple[int, int]:
    """The verdict against 0 of a planned comparison, and the number of its units."""
    found = PlannedMean(100, most=most)
    for number in range(1, most + 1):
        found.add_number(draw(chance))
        if number * PLANNED_LOOKS % most < PLANNED_LOOKS and (side := found.find_side(0.0)):
            return side, number
    return 0, most


PLANNED_UNITS: dict[str, Callable[[Random], float]] = {
    "normal": lambda chance: chance.gauss(0, 9),
    "skewness -2": lambda chance: 9 - chance.expovariate(1 / 9),
    "skewness 2": lambda chance: chance.expovariate(1 / 9) - 9,
    "careless": lambda chance: chance.gauss(0, 6) + (3 if chance.random() < 0.8 else -12),
    "+1.5, -28.5 (5 %)": lambda chance: -28.5 if chance.random() < 0.05 else 1.5,
    "+3, -27 (10 %)": lambda chance: -27 if chance.random() < 0.1 else 3,
    "+3, -27 (10 %), 3": lambda chance: (-27 if chance.random() < 0.1 else 3) + chance.gauss(0, 3),
    "+0.6, -29.4 (2 %), 3": lambda chance: (-29.4 if chance.random() < 0.02 else 0.6) + chance.gauss(0, 3),
}


def planned_errors(name: str, tests: int, most: int = 163) -> float:
    chance = Random(f"planned/{name}")
    return sum(plan_sequence(most, PLANNED_UNITS[name], chance)[0] != 0 for _ in range(tests)) / tests


@pytest.mark.parametrize("name", ["normal", "+1.5, -28.5 (5 %)"])
def test_a_planned_comparison_rarely_errs(name: str) -> None:
    assert planned_errors(name, 200) <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("most", [163, 400])
@pytest.mark.parametrize("name", PLANNED_UNITS)
def test_a_planned_comparison_errs_in_one_of_twenty(name: str, most: int) -> None:
    share = planned_errors(name, 2000, most)
    print(f"\n| {name} | {most} | {share:.1%} |")
    assert share <= 0.07


def test_a_planned_comparison_finds_what_it_is_planned_for() -> None:
    chance = Random(3)
    found = [plan_sequence(163, lambda chance: chance.gauss(2, 9), chance) for _ in range(400)]
    assert 0.74 < fmean(side == 1 for side, _ in found) < 0.86
    assert fmean(units for _, units in found) == pytest.approx(124, abs=6)


def test_few_different_numbers_exclude_nothing() -> None:
    found = PlannedMean(100, most=100)
    for number in [1.5] * 93 + [-28.5] * 7:
        found.add_number(number)
    assert found.interval() == (-100, 100)
    with pytest.raises(ValueError, match="error"):
        found.interval(0.01)
