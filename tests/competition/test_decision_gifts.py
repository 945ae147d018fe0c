"""Gifts by cards: what a card gives is judged by its seat's view, and pairs are tested for their number."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

import seatwise
from seatwise.cli import main
from seatwise.kits.ugo.match_luck import COST_SCALE, MatchGifts, judge_card, measure_gifts
from seatwise_referee.games.ugo import Ugo
from seatwise_server.competition.statistics.pair_test import (
    LEAST_JUDGED_MATCHES,
    _compare_takers,
    _test_scores,
    find_gifts,
)

BOTS = tuple(f"bots/b{number}/versions/1" for number in range(8))


def season(matches: int, gift: float, noise: float, seed: int) -> list[MatchGifts]:
    """The first bot gives the second so much, at the cost of the others; all else is chance."""
    chance, played = Random(seed), []
    for _ in range(matches):
        bots = tuple(chance.sample(BOTS, 4))
        gifts = [[chance.gauss(0, noise) for _ in bots] for _ in bots]
        if {BOTS[0], BOTS[1]} <= set(bots):
            gifts[bots.index(BOTS[0])][bots.index(BOTS[1])] += gift
        played.append(MatchGifts(bots, tuple(map(tuple, gifts))))
    return played


def test_a_gap_is_the_gift_to_one_less_the_mean_gift_to_the_others() -> None:
    gifts = ((-2.0, 5.0, 1.0, 3.0), (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))
    other = ((-1.0, 6.0, 1.0, 3.0), *gifts[1:])
    matches = [MatchGifts(BOTS[:4], gifts), MatchGifts(BOTS[:4], other)] * (LEAST_JUDGED_MATCHES // 2)
    found = {(each.giver, each.taker): each for each in find_gifts(matches)}
    assert found[BOTS[0], BOTS[1]].gain == 3.5
    assert found[BOTS[0], BOTS[2]].gain == -3.25
    assert found[BOTS[0], BOTS[1]].is_remarkable
    assert found[BOTS[1], BOTS[0]].p_value == 0.5


def test_friends_are_found_and_the_giver_is_told_from_the_taker() -> None:
    first, *others = find_gifts(season(400, gift=5, noise=7, seed=3))
    assert (first.giver, first.taker, first.is_remarkable) == (BOTS[0], BOTS[1], True)
    assert first.low < 5 < first.high
    assert not any(each.is_remarkable for each in others)


KINDS = {
    "no gift": 0.0,
    "three points in every match": 3.0,
    "fifteen in one of five": 15.0,
    "twelve in the last quarter": 12.0,
}


def season_with_gift(kind: str, seed: int, seats: int = 4) -> list[MatchGifts]:
    """400 matches. The gap of a match has a standard deviation of 8.9 points, with heavy tails. A gift is taken from the others at the table."""
    chance, played, met = Random(seed), [], 0
    tables = [tuple(chance.sample(BOTS, seats)) for _ in range(400)]
    meetings = sum({BOTS[0], BOTS[1]} <= set(bots) for bots in tables)
    for bots in tables:
        gifts = [
            [5.65 * chance.gauss() / math.sqrt(chance.gammavariate(2.5, 0.4)) for _ in bots] for _ in bots
        ]
        if {BOTS[0], BOTS[1]} <= set(bots):
            gift = KINDS[kind]
            if (kind.endswith("five") and met % 5) or (kind.endswith("quarter") and met < 0.75 * meetings):
                gift = 0.0
            met += 1
            giver, taker = map(bots.index, BOTS[:2])
            for seat in set(range(seats)) - {giver}:
                gifts[giver][seat] += gift if seat == taker else -gift / (seats - 2)
        played.append(MatchGifts(bots, tuple(map(tuple, gifts))))
    return played


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_the_power_against_each_kind_of_gift(kind: str) -> None:
    """For docs/statistics.md."""
    first = [find_gifts(season_with_gift(kind, seed))[0] for seed in range(100)]
    named = sum(each.is_remarkable for each in first)
    right = sum(each.is_remarkable and (each.giver, each.taker) == BOTS[:2] for each in first)
    print(f"{kind}: named {named} of 100, the right pair first {right}")
    assert named <= 11 if kind == "no gift" else right >= 50


def test_gifts_in_the_last_quarter_are_found() -> None:
    first = [find_gifts(season_with_gift("twelve in the last quarter", seed))[0] for seed in range(4)]
    assert [(each.giver, each.taker, each.is_remarkable) for each in first] == [(*BOTS[:2], True)] * 4
    assert {each.found_by for each in first} == {"in the last quarter of their matches"}


def test_honest_seasons_are_seldom_named() -> None:
    named = sum(find_gifts(season(100, gift=0, noise=7, seed=seed))[0].is_remarkable for seed in range(12))
    assert named <= 2


@pytest.mark.parametrize("large", [9, 11, 13])
def test_the_p_value_is_that_of_gifts_in_any_order(large: int) -> None:
    """One seat of three is given 30: with 20 matches, the number of large gifts to a bot is binomial."""
    rows = [(0.0, *(30.0 if seat == taken else 0.0 for seat in (1, 2, 3))) for taken in (1, 2)]
    given = [dict(_compare_takers(0, rows[number >= large]))[1] for number in range(20)]
    exact = [
        sum(math.comb(20, k) * 2 ** (20 - k) for k in range(least, 21)) / 3**20
        for least in (large, large + 1)
    ]
    assert _test_scores(given) == pytest.approx(sum(exact) / 2, rel=0.2)


def test_a_match_with_huge_gifts_neither_names_a_pair_nor_hides_a_friend() -> None:
    huge = [MatchGifts(BOTS[:4], ((0.0, 0.0, 900.0, 0.0), *[(0.0,) * 4] * 3))] * 2
    assert not any(each.is_remarkable for each in find_gifts([*season(200, gift=0, noise=3, seed=1), *huge]))
    first = find_gifts([*season(200, gift=5, noise=3, seed=3), *huge])[0]
    assert (first.giver, first.taker, first.is_remarkable) == (BOTS[0], BOTS[1], True)


def test_pairs_that_met_seldom_and_tables_of_two_are_not_judged() -> None:
    few = season(LEAST_JUDGED_MATCHES - 1, gift=9, noise=1, seed=1)
    twos = [MatchGifts(each.bots[:2], ((0.0, 1.0), (1.0, 0.0))) for each in season(90, 0, 1, 1)]
    assert find_gifts(few) == find_gifts(twos) == ()


# --- What a card gives ---------------------------------------------------------------------------------


def view_with_choice() -> Any:
    game = Ugo()
    state = game.deal(4, bytes(32), game.complete_options({"rounds": 1}))
    prompt = game.prompt(state)
    assert prompt is not None
    return game.view(state, min(prompt.seats))


def test_the_legal_cards_give_nothing_on_average_and_dear_cards_count_less() -> None:
    view = view_with_choice()
    gifts = [judge_card(view, card, Random(5)) for card in view.legal_cards]
    own = [each[view.seat or 0] for each in gifts]
    weights = [math.exp((each - max(own)) / COST_SCALE) for each in own]
    for seat in range(4):
        assert sum(weight * each[seat] for weight, each in zip(weights, gifts, strict=True)) == pytest.approx(
            0
        )
    assert max(own) < -min(own)


def test_a_record_has_the_same_gifts_each_time_and_they_are_those_of_its_bots(tmp_path: Path) -> None:
    file = tmp_path / "record"
    seatwise.play(["greedy", "random", "random"], seed=3, options={"rounds": 1}, records=file)
    found = measure_gifts(file.read_bytes(), deals=4)
    assert found == measure_gifts(file.read_bytes(), deals=4)
    assert [bot.split("/")[1] for bot in found.bots] == ["greedy", "random", "random-2"]
    own = [row[seat] for seat, row in enumerate(found.gifts)]
    assert own[0] > min(own)


def test_no_record_or_one_of_another_game_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "record"
    seatwise.play(["random", "random"], game="ubongo", seed=3, options={"rounds": 1}, records=file)
    for line in (b"{}", file.read_bytes()):
        with pytest.raises(ValueError, match="this is no record of ugo: "):
            measure_gifts(line)


# --- The command ---------------------------------------------------------------------------------------


def test_the_command_names_pairs_of_a_file_of_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "records"
    seatwise.play(["greedy", "random", "random"], seed=3, options={"rounds": 1}, records=file)
    file.write_bytes(file.read_bytes() * LEAST_JUDGED_MATCHES)
    assert main(["league", "gifts", str(file), "--deals", "1", "--json"]) == 0
    pairs = json.loads(capsys.readouterr().out)["pairs"]
    assert len(pairs) == 6
    assert {each["matches"] for each in pairs} == {LEAST_JUDGED_MATCHES}


def test_the_command_says_which_games_have_no_judge_and_which_file_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "records"
    seatwise.play(["random", "random"], game="ubongo", seed=3, options={"rounds": 1}, records=file)
    for path, why in ((file, "the moves of ubongo are not judged"), (tmp_path / "no", "cannot read")):
        assert main(["league", "gifts", str(path)]) == 2
        assert why in capsys.readouterr().err
