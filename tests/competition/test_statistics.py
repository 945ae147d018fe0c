"""Means, differences, pairs and orders of a season, on results small enough to reckon by hand."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from random import Random

import pytest
from seasons.simulated_points import DEAL_SHARE, PAR_ERROR, expected, season

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric import student_t
from seatwise_server.competition.schedules.round_robin import RoundRobin
from seatwise_server.competition.schedules.schedule import Duplicate
from seatwise_server.competition.statistics.luck_correction import (
    correct_by_measures,
    correct_by_other_tables,
    remaining_variance,
    uncorrected_points,
)
from seatwise_server.competition.statistics.season_statistics import (
    bootstrap_orders,
    compare_pairs,
    estimate_differences,
    estimate_entrant_means,
    estimate_mean,
    estimate_share,
)


def result(
    bots: str, *points: int, deal: str = "", seq: int = 1, par: tuple[float, ...] = ()
) -> LoggedResult:
    ranks = tuple(1 + sum(other > own for other in points) for own in points)
    return LoggedResult(
        seq, f"matches/{seq}", tuple(bots), points, ranks, ("COMPLETED",) * len(points), "", deal, par
    )


def results_of(*lines: tuple[str, tuple[int, ...]], deal: str = "") -> list[LoggedResult]:
    return [result(bots, *points, deal=deal, seq=seq) for seq, (bots, points) in enumerate(lines, 1)]


# Estimates


def test_the_interval_of_independent_values_is_students() -> None:
    found = estimate_mean([("a", 1.0), ("b", 2.0), ("c", 6.0)])
    error = math.sqrt(7) / math.sqrt(3)
    assert found.value == 3
    assert found.standard_error == pytest.approx(error)
    assert found.high == pytest.approx(3 + student_t.student_quantile(0.975, 2) * error)


def test_values_on_one_deal_count_once() -> None:
    assert estimate_mean([("a", 1.0), ("b", 2.0)] * 50).standard_error == pytest.approx(
        estimate_mean([("a", 1.0), ("b", 2.0)]).standard_error
    )


def test_one_deal_has_no_interval() -> None:
    found = estimate_mean([("a", 1.0), ("a", 2.0)])
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert str(found) == "1.50 (one deal: no interval)"
    assert found.probability_positive == 0.5


def test_no_values_have_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        estimate_mean([])


def test_a_share_does_not_leave_its_range() -> None:
    found = estimate_share([(str(deal), 1.0) for deal in range(10)])
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(10 / (10 + 1.96**2), abs=0.001)  # Wilson, by hand


def test_a_share_of_independent_matches_has_wilsons_interval() -> None:
    found = estimate_share([(str(match), float(match < 30)) for match in range(101)])
    p, n, z = 30 / 101, 100, 1.959964
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half), abs=1e-4)


def test_the_chance_of_more_is_that_of_the_t_distribution() -> None:
    found = estimate_mean([("a", 1.0), ("b", 2.0), ("c", 6.0)])
    assert found.probability_positive == pytest.approx(student_t.student_cdf(3 / found.standard_error, 2))
    assert estimate_mean([("a", 1.0), ("b", 1.0)]).probability_positive == 1.0


# Seasons


def test_means_are_those_of_the_points() -> None:
    means = estimate_entrant_means(results_of(("ab", (5, 1)), ("ba", (3, 2)), ("ab", (8, 0))))
    assert means["a"].value == 5
    assert means["b"].value == pytest.approx(4 / 3)


def test_the_strength_of_opponents_is_no_chance() -> None:
    lines = [("ab", (20, 0)), ("ac", (15, 5)), ("bc", (5, 15))]
    found = estimate_entrant_means(results_of(*(lines * 6)))
    assert found["a"].value == 17.5
    assert found["a"].standard_error < 0.01  # of its points alone it would be 0.75


def test_a_rotation_takes_the_deal_off() -> None:
    results = [
        result("ab", 30 + luck, 10 - luck, deal=f"d{luck}", seq=2 * luck + 1) for luck in (0, 9, 4)
    ] + [result("ba", 29 + luck, 11 - luck, deal=f"d{luck}", seq=2 * luck + 2) for luck in (0, 9, 4)]
    found = estimate_differences(results)["a", "b"]
    assert found.value == pytest.approx(1)
    assert found.standard_error == pytest.approx(0, abs=1e-9)
    assert found.clusters == 3
    assert estimate_differences(results)["b", "a"].value == pytest.approx(-1)


def test_where_a_deal_travelled_bots_of_different_tables_are_compared() -> None:
    results = [
        result("ab", 10, 5, deal="d1", seq=1), result("cd", 8, 5, deal="d1", seq=2),
        result("ba", 3, 9, deal="d2", seq=3), result("dc", 3, 8, deal="d2", seq=4),
    ]  # fmt: skip
    assert estimate_differences(results)["a", "c"].value == 1.5


def test_the_probability_that_one_bot_beats_another_is_shown() -> None:
    found = compare_pairs(results_of(*[("ab", (5, 3)), ("ba", (4, 4)), ("ab", (2, 1)), ("ba", (0, 5))] * 3))
    assert found["a", "b"].matches == 12
    assert found["a", "b"].ahead.value == 0.875
    assert found["a", "b"].probability_better > 0.97
    assert found["a", "b"].probability_better + found["b", "a"].probability_better == pytest.approx(1)


def test_bots_that_never_met_are_no_pair() -> None:
    assert ("a", "c") not in compare_pairs(results_of(("ab", (1, 2)), ("cd", (1, 2))))


# Luck


def pars_of(results: list[LoggedResult]) -> list[tuple[float, ...]]:
    return [each.par for each in results]


def test_par_takes_off_what_it_is_above_its_mean() -> None:
    results = [result("ab", 10, 6, par=(8.0, 5.0)), result("ab", 4, 6, par=(2.0, 7.0), seq=2)]
    assert correct_by_measures(results, [pars_of(results)], [0.5]).values == [(8.5, 6.5), (5.5, 5.5)]


def test_no_correction_moves_the_mean_of_all() -> None:
    matches = RoundRobin(tuple("abcdefgh"), 4, 14).all_matches()
    results = season(matches, dict(zip("abcdefgh", range(8), strict=True)), Random(3))
    plainly = uncorrected_points(results)
    by_par = correct_by_measures(results, [pars_of(results)], [0.7])
    for points in (by_par, correct_by_other_tables(results, plainly, 0.5)):
        totals = [sum(map(sum, each.values)) for each in (plainly, points)]
        assert totals[0] == pytest.approx(totals[1], rel=1e-9)


def test_parts_of_one_measure_add_up() -> None:
    matches = RoundRobin(tuple("abcd"), 2, 30).all_matches()
    results = season(matches, dict.fromkeys("abcd", 0.0), Random(2))
    pars = pars_of(results)
    one = correct_by_measures(results, [pars], [0.7])
    other = correct_by_measures(results, [pars, pars], [0.5, 0.2])
    for left, right in zip(one.values, other.values, strict=True):
        assert left == pytest.approx(right)
    assert one.common_shifts == pytest.approx(other.common_shifts)


def test_a_deal_that_rotated_is_not_taken_for_one_that_travelled() -> None:
    results = [
        result("ab", 9, 1, deal="d1", seq=1), result("ba", 7, 3, deal="d1", seq=2),
        result("ab", 2, 2, deal="d2", seq=3), result("ba", 0, 5, deal="d2", seq=4),
    ]  # fmt: skip
    assert (
        correct_by_other_tables(results, uncorrected_points(results), 0.5).values
        == uncorrected_points(results).values
    )


@pytest.mark.slow
def test_corrections_leave_the_part_of_the_variance_that_arithmetic_leaves() -> None:
    matches = RoundRobin(tuple("abcdefghijkl"), 4, 55).all_matches()
    results = season(matches, dict.fromkeys("abcdefghijkl", 0.0), Random(5))
    best = 1 / (1 + PAR_ERROR**2)
    assert remaining_variance(results, uncorrected_points(results)) == 1
    by_par = correct_by_measures(results, [pars_of(results)], [best])
    assert remaining_variance(results, by_par) == pytest.approx(1 - DEAL_SHARE * best, abs=0.04)
    # two other tables: their mean explains share² / (share + (1 - share) / 2)
    explained = DEAL_SHARE**2 / (DEAL_SHARE + (1 - DEAL_SHARE) / 2)
    others = correct_by_other_tables(results, uncorrected_points(results), DEAL_SHARE)
    assert remaining_variance(results, others) == pytest.approx(1 - explained, abs=0.05)


def test_without_luck_no_bot_at_another_table_changes_anything() -> None:
    """However unequal the bots are, and however often one sits where a strong one sits at the other table."""
    matches = RoundRobin(tuple("abcdefgh"), 4, 28).all_matches()
    strengths = dict(zip("abcdefgh", range(0, 80, 10), strict=True))
    results = [
        result("".join(match.bots), *(round(300 * expected(bot, match.bots, strengths)) for bot in match.bots),
               deal=match.deal.set, seq=seq)
        for seq, match in enumerate(matches, 1)
        if match.deal
    ]  # fmt: skip
    plainly = uncorrected_points(results)
    corrected = correct_by_other_tables(results, plainly, 0.5)
    for own, plain in zip(corrected.values, plainly.values, strict=True):
        assert own == pytest.approx(plain, abs=1e-3)


# Orders


def test_an_order_without_doubt_is_certain() -> None:
    found = bootstrap_orders(results_of(*[("abc", (9, 5, 1))] * 10))
    assert found.bots == ("a", "b", "c")
    assert found.likeliest_orders == ((("a", "b", "c"), 1.0),)
    assert found.rank_probabilities["b"] == (0.0, 1.0, 0.0)


def test_equals_are_as_often_first() -> None:
    results = [result("ab", *((5, 3) if seq % 2 else (3, 5)), seq=seq) for seq in range(1, 202)]
    first = bootstrap_orders(results).rank_probabilities["a"][0]
    assert 0.4 < first < 0.65


def test_deals_are_drawn_and_not_matches() -> None:
    """Ten matches on each of two deals say as little about the order as the two deals do."""
    many = [result("ab", *points, deal=f"d{deal}", seq=10 * deal + at)
            for deal, points in enumerate([(9, 0), (0, 8)]) for at in range(1, 11)]  # fmt: skip
    few = [result("ab", 9, 0, seq=1), result("ab", 0, 8, seq=2)]
    assert bootstrap_orders(many).rank_probabilities["a"][0] == pytest.approx(
        bootstrap_orders(few).rank_probabilities["a"][0], abs=0.01
    )
    assert bootstrap_orders(many).rank_probabilities["a"][0] < 0.85


def test_places_and_orders_are_probabilities() -> None:
    matches = RoundRobin(tuple("abcdef"), 3, 10, Duplicate.TRAVELLING).all_matches()
    found = bootstrap_orders(season(matches, dict.fromkeys("abcdef", 0.0), Random(2)), seed="x")
    assert all(sum(places) == pytest.approx(1) for places in found.rank_probabilities.values())
    assert all(
        sum(column) == pytest.approx(1) for column in zip(*found.rank_probabilities.values(), strict=True)
    )
    assert len(found.likeliest_orders) == 10
    assert found == bootstrap_orders(season(matches, dict.fromkeys("abcdef", 0.0), Random(2)), seed="x")


def test_nothing_played_has_no_order() -> None:
    assert bootstrap_orders([]).draws == 0


# The same log, the same digits


FIGURES = """
import json, sys
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.statistics.season_statistics import bootstrap_orders
from seatwise_server.competition.statistics.fairness import check_fairness
from seatwise_server.competition.statistics.luck_correction import correct_by_other_tables, uncorrected_points
from seatwise_server.competition.statistics.season_statistics import compare_pairs, estimate_entrant_means

results = list(map(LoggedResult.from_json, json.load(sys.stdin)))
points = correct_by_other_tables(results, uncorrected_points(results), 0.45)
means = [sorted(estimate_entrant_means(results, each).items()) for each in (None, points)]
print(means, compare_pairs(results), bootstrap_orders(results), check_fairness(results))
"""


def test_every_process_finds_the_same_digits() -> None:
    """Each process has a hash seed of its own, and with it another order of sets of texts."""
    matches = RoundRobin(tuple("abcdefg"), 3, 20, Duplicate.TRAVELLING).all_matches()
    results = season(matches, dict.fromkeys("abcdefg", 0.0), Random(3))
    log = json.dumps([result.to_json() for result in results])
    told = [
        subprocess.run(
            [sys.executable, "-c", FIGURES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            input=log,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
