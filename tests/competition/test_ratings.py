"""Ratings as a pure function of the result log."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import pytest
from harness.ladder import recompute_ratings

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.openskill_ratings import (
    INITIAL_MU,
    OpenskillRatings,
    Rating,
    ResultOutOfOrder,
)

FOUR = ("bots/a/versions/1", "bots/b/versions/1", "bots/c/versions/1", "bots/a/versions/2")


def result(
    seq: int, bots: tuple[str, ...], ranks: tuple[int, ...], ending: str = "COMPLETED"
) -> LoggedResult:
    endings = tuple(ending if rank == max(ranks) else "COMPLETED" for rank in ranks)
    return LoggedResult(seq, f"matches/{seq}", bots, tuple(10 - rank for rank in ranks), ranks, endings)


def season(matches: int, bots: int, seed: int, seats: int = 4) -> list[LoggedResult]:
    """A log in which a higher number tends to win, with ties."""
    chance = random.Random(seed)
    names = [f"bots/b{number:03}/versions/1" for number in range(bots)]
    log = []
    for seq in range(1, matches + 1):
        table = chance.sample(range(bots), seats)
        points = [round(chance.gauss(bot / bots, 1)) for bot in table]
        ranks = tuple(1 + sum(other > own for other in points) for own in points)
        log.append(result(seq, tuple(names[bot] for bot in table), ranks))
    return log


def test_a_new_version_starts_anew_whatever_its_forerunner_did() -> None:
    ratings = recompute_ratings([result(1, FOUR[:3], (1, 2, 3))])
    assert ratings.rating_of(FOUR[0]).mu > INITIAL_MU
    assert ratings.rating_of(FOUR[3]) == Rating()


def test_a_bot_that_is_ahead_rises_and_one_that_is_behind_falls() -> None:
    ratings = recompute_ratings([result(1, FOUR, (2, 4, 1, 3))])
    mus = [ratings.rating_of(bot).mu for bot in FOUR]
    assert mus[2] > mus[0] > mus[3] > mus[1]
    assert [bot for bot, _ in ratings.ranked_bots()] == [FOUR[2], FOUR[0], FOUR[3], FOUR[1]]


def test_equals_who_tie_stay_equal_and_nobody_gains_by_the_seat() -> None:
    ratings = recompute_ratings([result(1, FOUR, (1, 1, 3, 3))])
    turned = recompute_ratings([result(1, FOUR[::-1], (3, 3, 1, 1))])
    assert ratings.rating_of(FOUR[0]) == ratings.rating_of(FOUR[1])
    for bot in FOUR:
        assert ratings.rating_of(bot).mu == pytest.approx(turned.rating_of(bot).mu, abs=1e-12)


def test_a_forfeit_is_a_loss_to_all_who_stayed() -> None:
    """Whatever its points were, for `ranks` puts it behind them; how it left makes no difference."""
    left = [
        recompute_ratings([result(1, FOUR, (1, 2, 3, 4), ending)]).rating_of(FOUR[3])
        for ending in ("TIMED_OUT", "COMPLETED")
    ]
    assert left[0] == left[1]
    assert left[0].mu < INITIAL_MU


def test_a_version_that_sits_twice_or_alone_is_not_rated_by_it() -> None:
    ratings = recompute_ratings(
        [result(1, (FOUR[0], FOUR[0], FOUR[1]), (1, 2, 3)), result(2, (FOUR[2],), (1,))]
    )
    assert (ratings.seq, ratings.ranked_bots()) == (2, [])


def test_nothing_drifts() -> None:
    """No match makes a rating less sure than it was, and none touches the rating of who was not there."""
    ratings = OpenskillRatings()
    for entry in season(1500, 6, seed=1):
        before = dict(ratings.ranked_bots())
        ratings.apply_result(entry)
        for bot, rating in before.items():
            now = ratings.rating_of(bot)
            assert now.sigma < rating.sigma if bot in entry.bots else now == rating


def test_a_result_that_comes_twice_counts_once() -> None:
    log = season(20, 6, seed=2)
    ratings = recompute_ratings(log)
    once = ratings.ranked_bots()
    for again in log:
        ratings.apply_result(again)
    assert ratings.ranked_bots() == once


def test_a_gap_in_the_log_is_refused_and_changes_nothing() -> None:
    log = season(5, 6, seed=3)
    ratings = recompute_ratings(log[:3])
    before = ratings.ranked_bots()
    with pytest.raises(ResultOutOfOrder, match="result 5 does not directly follow 3"):
        ratings.apply_result(log[4])
    assert ratings.ranked_bots() == before


def test_another_process_finds_the_same_digits() -> None:
    """Hash seeds, ids and the order of dictionaries differ there."""
    program = (
        "import json, sys; from seatwise_server.competition.logged_result import LoggedResult;"
        "from seatwise_server.competition.ratings.openskill_ratings import OpenskillRatings;"
        "ratings = OpenskillRatings();"
        "[ratings.apply_result(LoggedResult.from_json(each)) for each in json.load(sys.stdin)];"
        "print(ratings.ranked_bots())"
    )
    log = season(50, 6, seed=4)
    lines = json.dumps([entry.to_json() for entry in log])
    other = subprocess.run(
        [sys.executable, "-c", program], input=lines, capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == str(recompute_ratings(log).ranked_bots())


def test_a_result_can_be_read_without_openskill() -> None:
    program = "import sys; import seatwise_server.competition.ratings.openskill_ratings; sys.exit('openskill' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.slow
def test_a_hundred_thousand_results_are_recomputed_within_ten_seconds() -> None:
    log = season(100_000, 300, seed=5)
    began = time.process_time()
    recompute_ratings(log)
    assert time.process_time() - began < 10
