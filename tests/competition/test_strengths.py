"""Strengths from all matches at once."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matches.effort import examples
from seasons.virtual_ladder import plackett_luce

from seatwise.anytime_mean import anytime_quantile
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import dot_product, solve_system, zero_matrix
from seatwise_server.competition.numeric.student_t import half_width_errors
from seatwise_server.competition.ratings.comparisons import count_comparisons, probability_ahead
from seatwise_server.competition.ratings.sandwich_covariance import (
    add_model_covariance,
    measure_design_effects,
)
from seatwise_server.competition.ratings.strengths import ELO_SCALE, fit_strengths

NAMES = [f"bots/b{n}/versions/1" for n in range(12)]


def match(seq: int, bots: Sequence[str], ranks: Sequence[int], deal: str = "") -> LoggedResult:
    points = tuple(-rank for rank in ranks)
    return LoggedResult(
        seq, f"matches/{seq}", tuple(bots), points, tuple(ranks), ("COMPLETED",) * len(bots), deal=deal
    )


def season(matches: int, bots: int, seed: int, seats: int = 4, spread: float = 1.0) -> list[LoggedResult]:
    """The higher its number, the stronger a bot."""
    chance = random.Random(seed)
    play = plackett_luce({name: spread * n / bots for n, name in enumerate(NAMES)})
    tables = [chance.sample(NAMES[:bots], seats) for _ in range(matches)]
    return [match(seq, table, play(table, chance)) for seq, table in enumerate(tables, 1)]


@settings(max_examples=examples(20, 8))
@given(st.integers(0, 10**6), st.integers(2, 4), st.randoms())
def test_the_order_of_the_matches_changes_no_digit(seed: int, seats: int, chance: random.Random) -> None:
    log = season(30, 6, seed, seats)
    log += [
        match(99, NAMES[:seats], range(1, seats + 1), deal="d"),
        match(98, NAMES[1 : seats + 1], [1] * seats, deal="d"),
    ]
    before = fit_strengths(log)
    chance.shuffle(log)
    after = fit_strengths(log)
    assert after.strengths == before.strengths
    assert after.strength_difference(NAMES[0], NAMES[1]) == before.strength_difference(NAMES[0], NAMES[1])


def test_the_order_of_the_seats_changes_no_digit() -> None:
    log = season(40, 6, seed=1)
    turned = [match(r.seq, r.bots[::-1], r.ranks[::-1]) for r in log]
    assert fit_strengths(turned).strengths == fit_strengths(log).strengths


def test_strengths_come_out_as_they_went_in() -> None:
    found = fit_strengths(season(4000, 5, seed=2, spread=2.0))
    assert [strength.bot for strength in found.strengths] == NAMES[4::-1]
    for one, other in pairwise(NAMES[:5]):
        assert found.strength_difference(other, one).value == pytest.approx(ELO_SCALE * 0.4, abs=20)


def test_a_hundred_points_are_sixty_four_of_a_hundred_matches() -> None:
    log = [match(n, NAMES[:2], (1, 2) if n % 100 < 64 else (2, 1)) for n in range(1, 20_001)]
    found = fit_strengths(log)
    assert found.strength_difference(*NAMES[:2]).value == pytest.approx(100, abs=0.5)


def test_with_two_bots_and_many_matches_the_interval_is_the_binomials() -> None:
    log = [match(n, NAMES[:2], (1, 2) if n % 5 < 3 else (2, 1)) for n in range(1, 10_001)]
    of_log_odds = 1.96 / math.sqrt(10_000 * 0.6 * 0.4)
    assert fit_strengths(log).strength_difference(*NAMES[:2]).half_width == pytest.approx(
        ELO_SCALE * of_log_odds, rel=0.005
    )


def test_a_tie_is_half() -> None:
    drawn = fit_strengths([match(n, NAMES[:4], (1, 1, 1, 1)) for n in range(1, 50)])
    assert all(strength.value == pytest.approx(0, abs=1e-6) for strength in drawn.strengths)
    shared = [match(1, NAMES[:2], (1, 1)), match(2, NAMES[:2], (1, 1))]
    split = [match(1, NAMES[:2], (1, 2)), match(2, NAMES[:2], (2, 1))]
    assert fit_strengths(shared).strength_difference(*NAMES[:2]).value == pytest.approx(
        fit_strengths(split).strength_difference(*NAMES[:2]).value
    )


def test_strengths_are_told_above_the_reference() -> None:
    found = fit_strengths(season(50, 6, seed=3))
    assert sum(found.shares[each.bot] * each.value for each in found.strengths) == pytest.approx(0, abs=1e-6)


def test_a_bot_that_never_wins_does_not_move_the_others() -> None:
    log = season(200, 5, seed=3, seats=2)
    lost = [match(len(log) + n, (NAMES[n % 5], "loser"), (1, 2)) for n in range(50)]
    before = {each.bot: each.value for each in fit_strengths(log).strengths}
    after = fit_strengths([*log, *lost])
    assert after.shares["loser"] == 0
    assert all(
        each.value == pytest.approx(before[each.bot], abs=4)
        for each in after.strengths
        if each.bot != "loser"
    )


def test_no_bot_is_known_without_doubt_because_it_is_the_whole_reference() -> None:
    a, b, c = NAMES[:3]
    log = [match(n, (a, b), (1, 2)) for n in range(3)] + [match(n, (b, c), (1, 2)) for n in range(3, 6)]
    assert all(
        each.low < each.value < each.high and each.provisional for each in fit_strengths(log).strengths
    )


def test_a_difference_turns_its_sign_and_keeps_its_width() -> None:
    found = fit_strengths(season(50, 6, seed=4))
    there, back = found.strength_difference(NAMES[0], NAMES[5]), found.strength_difference(NAMES[5], NAMES[0])
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))
    assert found.strength_difference(NAMES[0], NAMES[0]).half_width == 0


def test_bots_that_cannot_be_told_apart_cannot_be_from_either_side() -> None:
    found = fit_strengths(season(60, 8, seed=5, spread=3.0))
    pairs = {(s.bot, other) for s in found.strengths for other in found.indistinct_bots(s.bot)}
    assert pairs == {(other, bot) for bot, other in pairs}
    assert 0 < len(pairs) < 8 * 7
    assert (NAMES[0], NAMES[7]) not in pairs


def test_a_bot_is_provisional_until_it_is_known() -> None:
    few, many = fit_strengths(season(12, 6, seed=6)), fit_strengths(season(200, 6, seed=6))
    assert all(strength.provisional for strength in few.strengths)
    assert not any(strength.provisional for strength in many.strengths)


def test_a_bot_that_has_won_everything_stays_this_side_of_infinity_and_provisional() -> None:
    log = season(100, 6, seed=7)
    log += [match(1000 + n, (NAMES[7], *NAMES[:3]), (1, 2, 3, 4)) for n in range(100)]
    best = fit_strengths(log).strengths[0]
    assert best.bot == NAMES[7]
    assert best.high < 10_000
    assert best.provisional


def test_a_ladder_on_which_everybody_beats_the_next_has_strengths() -> None:
    names = [f"bots/b{n:03}/versions/1" for n in range(30)]
    meetings = [pair for pair in pairwise(names) for _ in range(300)]
    found = fit_strengths(match(seq, pair, (1, 2)) for seq, pair in enumerate(meetings, 1))
    assert [strength.bot for strength in found.strengths] == names
    assert all(strength.provisional for strength in found.strengths)


def test_bots_may_lie_further_apart_than_an_exponential_can_hold() -> None:
    found = np.zeros((4, 4))
    add_model_covariance(found, {(0, 1, 2, 3): 1.0}, [4000.0, -4000.0, 0.0, 3999.0])
    assert all(math.isfinite(value) for row in found for value in row)
    assert found[0][0] == pytest.approx(probability_ahead(1.0) * probability_ahead(-1.0)), (
        "all but the nearest duel is certain"
    )


def test_groups_that_never_met_are_not_compared() -> None:
    """Each is told above its own reference; the smaller one is provisional, however much it has played."""
    large, small = season(200, 5, seed=8), season(300, 3, seed=9, seats=3)
    moved = [
        match(r.seq + 200, [bot.replace("bots/b", "bots/other") for bot in r.bots], r.ranks) for r in small
    ]
    found = fit_strengths(large + moved)
    others = [strength for strength in found.strengths if "other" in strength.bot]
    assert {strength.provisional for strength in others} == {True}
    assert sum(found.shares[each.bot] * each.value for each in others) == pytest.approx(0, abs=1e-6)
    assert found.strength_difference(others[0].bot, NAMES[0]).half_width == math.inf
    assert set(NAMES[:5]) <= set(found.indistinct_bots(others[0].bot))
    bridged = fit_strengths(
        [*large, *moved, *(match(600 + n, (others[n % 3].bot, NAMES[n % 5]), (1, 2)) for n in range(40))]
    )
    assert math.isfinite(bridged.strength_difference(others[0].bot, NAMES[0]).half_width)


def test_tables_of_one_deal_are_one_piece_of_evidence() -> None:
    """The same matches once more, on the same deals, tell nothing new; as matches of their own they would."""
    log = season(150, 6, seed=10)
    once = [match(r.seq, r.bots, r.ranks, deal=f"d{r.seq}") for r in log]
    again = [match(r.seq + 150, r.bots, r.ranks, deal=f"d{r.seq}") for r in log]
    apart = [match(r.seq + 150, r.bots, r.ranks) for r in log]
    first, same, new = fit_strengths(once), fit_strengths(once + again), fit_strengths(log + apart)
    halves = [found.strength_difference(NAMES[0], NAMES[1]).half_width for found in (first, same, new)]
    assert halves[1] == pytest.approx(halves[0], rel=0.05)
    assert halves[2] == pytest.approx(halves[0] / math.sqrt(2), rel=0.05)


def test_a_version_that_sits_twice_or_alone_says_nothing() -> None:
    log = season(20, 4, seed=11)
    more = [match(90, (NAMES[0], NAMES[0], NAMES[1]), (1, 2, 3)), match(91, (NAMES[9],), (1,))]
    assert fit_strengths(log + more).strengths == fit_strengths(log).strengths


def test_a_log_without_matches_has_no_strengths() -> None:
    assert fit_strengths([]).strengths == ()


def test_the_model_of_a_table_is_plackett_and_luces() -> None:
    """Beside the sum over all the orders in which four can come out."""
    strengths = [0.7, -0.4, 0.1, 1.3]
    odds = list(map(math.exp, strengths))
    of_orders = [(order, _probability(order, odds)) for order in permutations(range(4))]
    assert sum(p for _, p in of_orders) == pytest.approx(1)
    expected = zero_matrix(4)
    wins = [(p, [3 - order.index(bot) for bot in range(4)]) for order, p in of_orders]
    means = [sum(p * won[bot] for p, won in wins) for bot in range(4)]
    for p, won in wins:
        for one in range(4):
            for other in range(4):
                expected[one][other] += p * (won[one] - means[one]) * (won[other] - means[other])
    found = np.zeros((4, 4))
    add_model_covariance(found, {(0, 1, 2, 3): 1.0}, strengths)
    for row, right in zip(found, expected, strict=True):
        assert row.tolist() == pytest.approx(right, abs=1e-12)


def test_deals_on_which_luck_goes_round_have_no_variance() -> None:
    """Each bot won at the better seat of each deal: no more can be learnt of that from more deals."""
    log = [match(seq, pair, (1, 2)) for seq, pair in enumerate([NAMES[:2], NAMES[1::-1]] * 20, 1)]
    rotated = [replace(result, deal=f"deals/{result.seq // 2}") for result in log]
    paired = [replace(result, deal=f"deals/{(result.seq - 1) // 2}") for result in log]
    effects = [
        measure_design_effects(count_comparisons(each), [0.0, 0.0])[0]
        for each in (log, paired, rotated[1:-1])
    ]
    assert effects == [1.0, 0.0, 0.0]
    doubled = [replace(result, deal=f"deals/{(result.seq - 1) // 4}", ranks=(1 + result.seq % 2, 2 - result.seq % 2))
               for result in log]  # fmt: skip
    assert measure_design_effects(count_comparisons(doubled), [0.0, 0.0]) == pytest.approx([4.0, 4.0])


def _probability(order: Sequence[int], odds: Sequence[float]) -> float:
    p, left = 1.0, list(order)
    while left:
        p *= odds[left[0]] / sum(odds[bot] for bot in left)
        left.pop(0)
    return p


def test_the_algebra_holds() -> None:
    chance = random.Random(12)
    root = [[chance.gauss(0, 1) for _ in range(7)] for _ in range(7)]
    matrix = [
        [dot_product(one, other) + (i == j) for j, other in enumerate(root)] for i, one in enumerate(root)
    ]
    right = [chance.gauss(0, 1) for _ in range(7)]
    x = solve_system(
        lambda v: [dot_product(row, v) for row in matrix], [matrix[i][i] for i in range(7)], right
    )
    assert [dot_product(row, x) for row in matrix] == pytest.approx(right, abs=1e-9)


def test_an_interval_at_every_look_is_wider_by_the_quantile_of_the_page():
    fit = fit_strengths(season(60, 6, seed=3))
    for once, always in zip(fit.strengths, fit.widen_for_every_look().strengths, strict=True):
        error = (once.high - once.low) / 2 / half_width_errors(60 - 6)
        quantile = anytime_quantile((80 / error) ** 2)
        assert always.high - always.value == pytest.approx(
            (once.high - once.value) * quantile / 1.959964, rel=1e-6
        )
        assert always.low + always.high == pytest.approx(2 * once.value)
        assert always.provisional == (once.provisional or always.high - always.value > 100)


def test_two_bots_are_told_apart_at_every_look_where_their_intervals_leave_out_0():
    """Of two bots, each strength is half of their difference, and so is its error."""
    for seed in range(30):
        fit = fit_strengths(season(80, 2, seed, seats=2, spread=1.2))
        one, other = fit.strengths
        error = (one.high - one.low) / 2 / half_width_errors(80 - 2)
        wider = anytime_quantile((80 / (2 * error)) ** 2) / 1.959964
        left_out = one.value > wider * (one.high - one.value)
        assert fit.excludes_equality(one.bot, other.bot) == left_out
