"""Sequential tests, against published figures and against their own promise."""

from __future__ import annotations

from random import Random

import pytest

from seatwise_server.competition.statistics.sprt import (
    PointsTest,
    SprtVerdict,
    decide_by_ratio,
    expected_score,
    normal_log_ratio,
    outcome_log_ratio,
    wald_bounds,
)


def test_the_bounds_for_errors_of_five_percent_are_the_known_ones() -> None:
    # "LLR: ... (-2.94, 2.94)" in every report of fishtest, OpenBench and fastchess
    assert wald_bounds(0.05, 0.05) == pytest.approx((-2.944, 2.944), abs=0.001)


@pytest.mark.parametrize(
    ("wins", "losses", "draws", "elos", "ratio"),
    [
        (21404, 21184, 40708, (0.5, 2.5), -1.57),  # "logistic trinomial 1"
        (57433, 57030, 106593, (0.0, 2.0), -2.59),  # "logistic trinomial 2"
    ],
)
def test_wins_draws_and_losses_weigh_as_published(
    wins: int, losses: int, draws: int, elos: tuple[float, float], ratio: float
) -> None:
    # fastchess, app/tests/sprt_test.cpp, which gives two digits
    assert outcome_log_ratio((losses, draws, wins), elos) == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize(
    ("pairs", "elos", "ratio"),
    [
        ((223, 9863, 20279 + 1000, 10037, 246), (0.5, 2.5), -3.07),  # "logistic pentanomial 1"
        ((871, 26175, 55003 + 980, 26678, 821), (0.0, 2.0), -4.98),  # "logistic pentanomial 2"
    ],
)
def test_pairs_of_games_weigh_as_published(
    pairs: tuple[int, ...], elos: tuple[float, float], ratio: float
) -> None:
    # fastchess, app/tests/sprt_test.cpp: lost twice, lost and drawn, level, won and drawn, won twice
    assert outcome_log_ratio(pairs, elos) == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize(
    ("wins", "losses", "draws", "elos", "ratio"),
    [(21404, 21184, 40708, (0.5, 2.5), -1.57), (57433, 57030, 106593, (0.0, 2.0), -2.59)],
)
def test_points_weigh_as_published_where_points_are_scores(
    wins: int, losses: int, draws: int, elos: tuple[float, float], ratio: float
) -> None:
    # the two of fastchess again: with so many matches nothing but mean and spread matters
    means = (expected_score(elos[0]), expected_score(elos[1]))
    count = wins + losses + draws
    assert normal_log_ratio(count, wins + draws / 2, wins + draws / 4, means) == pytest.approx(
        ratio, abs=0.01
    )


def test_with_many_matches_both_ratios_are_one() -> None:
    wins, draws, losses = 5100, 2000, 4900
    means = (expected_score(0), expected_score(10))
    by_spread = normal_log_ratio(12000, wins + draws / 2, wins + draws / 4, means)
    assert outcome_log_ratio((losses, draws, wins), (0, 10)) == pytest.approx(by_spread, rel=0.01)


def test_an_outcome_that_never_occurred_is_no_proof_of_anything() -> None:
    assert 0 < outcome_log_ratio((0, 0, 0, 0, 10), (0, 5)) < 1


def test_a_ratio_between_the_bounds_decides_nothing() -> None:
    assert [decide_by_ratio(ratio, 0.05, 0.05) for ratio in (-2.95, -2.94, 2.94, 2.95)] == [
        SprtVerdict.H0,
        SprtVerdict.OPEN,
        SprtVerdict.OPEN,
        SprtVerdict.H1,
    ]


def test_nothing_is_decided_before_enough_units_are_played() -> None:
    ratios, verdict = PointsTest(least_units=10).run_test([5.0, 6.0] * 20)
    assert verdict is SprtVerdict.H1
    assert len(ratios) == 10


def test_a_result_after_the_verdict_changes_nothing() -> None:
    differences = [5.0, 6.0] * 20
    assert PointsTest().first_verdict([*differences, *[-50.0] * 100]) is SprtVerdict.H1


def test_equal_differences_do_not_break_the_test() -> None:
    assert PointsTest().first_verdict([2.0] * 50) is SprtVerdict.H1
    assert PointsTest().first_verdict([0.0] * 50) is SprtVerdict.H0
    assert PointsTest().first_verdict([1.0] * 50) is SprtVerdict.OPEN


@pytest.mark.parametrize("shape", ["normal", "heavy"])
@pytest.mark.parametrize(("truth", "wrong"), [(0.0, SprtVerdict.H1), (4.0, SprtVerdict.H0)])
def test_errors_are_as_rare_as_was_asked_for(shape: str, truth: float, wrong: SprtVerdict) -> None:
    """Wald's bounds promise alpha / (1 - beta) at the most, 0.0526 here; 2000 tests see that within 0.01."""
    chance = Random(f"sprt/{shape}/{truth}")
    test = PointsTest(least_points=4.0)

    def difference() -> float:
        noise = (
            chance.gauss() if shape == "normal" else (chance.expovariate(1) - chance.expovariate(1)) / 2**0.5
        )
        return truth + 12 * noise

    errors = sum(test.first_verdict(difference() for _ in range(2000)) is wrong for _ in range(2000))
    assert 0.02 <= errors / 2000 <= 0.065


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"least_points": 0.0}, "least_points: must be between 0 and 1000"),
        ({"least_points": 1e308}, "least_points: must be between 0 and 1000"),
        ({"least_points": float("nan")}, "least_points: must be between 0 and 1000"),
        ({"alpha": 0.5}, "alpha: must be between 0 and 0.5"),
        ({"beta": 0.0}, "beta: must be between 0 and 0.5"),
    ],
)
def test_settings_that_make_no_test_are_named(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PointsTest(**settings)  # type: ignore[arg-type]
