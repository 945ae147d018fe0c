"""Student's t beside the figures of its printed tables."""

from __future__ import annotations

import math

import pytest

from seatwise_server.competition.numeric.student_t import (
    normal_quantile,
    regularized_incomplete_beta,
    student_cdf,
    student_quantile,
)

# The two-sided 5 % and 1 % points as any statistics book prints them.
PRINTED = {
    1: (12.706, 63.657),
    2: (4.303, 9.925),
    5: (2.571, 4.032),
    10: (2.228, 3.169),
    30: (2.042, 2.750),
    120: (1.980, 2.617),
}


@pytest.mark.parametrize("freedom", PRINTED)
def test_quantiles_are_those_of_the_printed_table(freedom: int) -> None:
    assert (
        round(student_quantile(0.975, freedom), 3),
        round(student_quantile(0.995, freedom), 3),
    ) == PRINTED[freedom]


@pytest.mark.parametrize("freedom", [1.0, 2.5, 7.0, 80.0, 5000.0])
@pytest.mark.parametrize("probability", [0.5, 0.6, 0.975, 0.9999])
def test_a_quantile_turns_the_distribution_round(freedom: float, probability: float) -> None:
    assert student_cdf(student_quantile(probability, freedom), freedom) == pytest.approx(
        probability, abs=1e-12
    )
    assert student_cdf(-student_quantile(probability, freedom), freedom) == pytest.approx(
        1 - probability, abs=1e-12
    )


@pytest.mark.parametrize("value", [-3.0, -0.2, 0.0, 1.0, 40.0])
def test_with_one_degree_of_freedom_it_is_cauchys(value: float) -> None:
    assert student_cdf(value, 1) == pytest.approx(0.5 + math.atan(value) / math.pi, abs=1e-13)


def test_with_many_degrees_of_freedom_it_is_the_normal_distribution() -> None:
    assert student_quantile(0.975, 1e7) == pytest.approx(normal_quantile(0.975), abs=1e-6)


def test_the_incomplete_beta_of_whole_numbers_is_a_binomial_tail() -> None:
    tail = sum(math.comb(9, k) * 0.3**k * 0.7 ** (9 - k) for k in range(4, 10))
    assert regularized_incomplete_beta(4, 6, 0.3) == pytest.approx(tail, abs=1e-14)
