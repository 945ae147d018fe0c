"""Tables of results: declared criteria, one after the other, and stated rules for those who left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.standings import tie_breaks
from seatwise_server.competition.standings.played_season import PlayedSeason
from seatwise_server.competition.standings.ranking import rank_entrants, standings_in_order
from seatwise_server.competition.standings.scoring import (
    CrosstableCell,
    build_crosstable,
    counted_points,
    match_scores,
    table_scores,
)
from seatwise_server.competition.standings.tie_breaks import BY_SCORE, TIE_BREAK_WORDS, TIE_BREAKS


def result(bots: str, *points: int, left: str = "", ending: str = "TIMED_OUT", seq: int = 1) -> LoggedResult:
    """Bots are letters; those in `left` went before the end."""
    endings = tuple(ending if bot in left else "COMPLETED" for bot in bots)
    merits = [(bot not in left, own) for bot, own in zip(bots, points, strict=True)]
    ranks = tuple(1 + sum(other > own for other in merits) for own in merits)
    return LoggedResult(seq, f"matches/{seq}", tuple(bots), points, ranks, endings)


def places(*results: LoggedResult, criteria: tuple[str, ...] = ("points",), **more: object) -> dict[str, int]:
    entrants = sorted({bot for each in results for bot in each.bots})
    return {line.bot: line.rank for line in rank_entrants(results, entrants, criteria, **more)}  # type: ignore[arg-type]


def test_the_mean_of_points_orders() -> None:
    assert places(result("ab", 3, 5), result("ca", 1, 9)) == {"a": 1, "b": 2, "c": 3}


def test_level_bots_share_a_place_and_the_next_is_left_out() -> None:
    assert places(result("abc", 5, 5, 1)) == {"a": 1, "b": 1, "c": 3}


def test_the_next_criterion_is_asked_only_of_those_who_are_level(monkeypatch: pytest.MonkeyPatch) -> None:
    results = (result("ab", 9, 1), result("ba", 9, 1), result("ac", 5, 5), result("bc", 5, 6))
    asked: list[str] = []

    def count_wins(season: PlayedSeason, bot: str, level: Sequence[str]) -> float:
        asked.append(bot)
        return tie_breaks.count_wins(season, bot, level)

    monkeypatch.setitem(TIE_BREAKS, "wins", count_wins)  # type: ignore[arg-type]
    lines = rank_entrants(results, "abc", ("points", "wins"))
    assert [(line.bot, line.rank) for line in lines] == [("c", 1), ("a", 2), ("b", 3)]
    assert asked == ["a", "b"]


def test_head_to_head_counts_only_matches_among_those_who_are_level() -> None:
    results = (result("ab", 4, 6), result("ac", 6, 2), result("bc", 4, 3))
    assert places(*results, criteria=("points", "head_to_head")) == {"b": 1, "a": 2, "c": 3}


def test_head_to_head_in_a_circle_leaves_all_level() -> None:
    results = (result("ab", 6, 4), result("bc", 6, 4), result("ca", 6, 4))
    assert set(places(*results, criteria=("points", "head_to_head")).values()) == {1}


def test_a_bot_that_has_several_seats_at_a_table_has_played_one_match_there() -> None:
    left = result("abab", 7, 6, 5, 4, left="b", seq=2)
    lines = {line.bot: line for line in rank_entrants([result("aab", 1, 5, 5), left], "ab")}
    assert (lines["a"].matches, lines["b"].matches, lines["b"].forfeits) == (2, 2, 1)
    assert lines["a"].points == (1 + 5 + 7 + 5) / 4


def test_head_to_head_counts_all_seats_of_those_who_have_several() -> None:
    results = (result("aab", 9, 3, 6), result("bba", 7, 5, 6))
    assert places(*results, criteria=("points", "head_to_head")) == {"a": 1, "b": 1}
    assert places(result("aab", 4, 8, 6), result("bab", 8, 6, 4), criteria=("head_to_head",)) == {
        "a": 1,
        "b": 1,
    }


def test_buchholz_prefers_who_met_the_better() -> None:
    results = (result("ab", 1, 0), result("cd", 1, 0), result("ac", 0, 0), result("be", 1, 0))
    assert places(*results, criteria=("score",))["a"] == places(*results, criteria=("score",))["c"]
    found = places(*results, criteria=("score", "buchholz"))
    assert found["a"] < found["c"]


def test_a_bye_scores_a_win_and_brings_no_points() -> None:
    lines = {line.bot: line for line in rank_entrants([result("ab", 4, 2)], "abc", BY_SCORE, [(1, "c")])}
    assert (lines["c"].score, lines["c"].byes, lines["c"].matches, lines["c"].points) == (1.0, 1, 0, 0.0)
    assert lines["c"].rank > lines["a"].rank  # level by score, and nobody whom it met


def test_a_bot_that_has_not_played_is_last() -> None:
    lines = rank_entrants([result("ab", -4, -2)], "abc", ("points",))
    assert [line.bot for line in lines] == ["b", "a", "c"]


def test_a_bot_that_leaves_keeps_no_more_than_the_least_of_the_others() -> None:
    assert counted_points(result("abc", 30, 7, 3, left="a")) == (3, 7, 3)
    assert counted_points(result("abc", 1, 7, 3, left="a")) == (1, 7, 3)
    assert counted_points(result("ab", 9, 4, left="ab")) == (4, 4)


def test_a_bot_that_leaves_is_behind_all_who_stayed() -> None:
    assert match_scores(result("abc", 30, 7, 3, left="a")) == (0.0, 1.0, 0.5)


def test_a_shared_place_is_half() -> None:
    assert match_scores(result("abcd", 5, 5, 9, 1)) == pytest.approx((0.5, 0.5, 1.0, 0.0))


def test_forfeits_and_resignations_are_counted_apart() -> None:
    results = [result("ab", 1, 2, left="a"), result("ab", 1, 2, left="a", ending="RESIGNED")]
    [_, line] = rank_entrants(results, "ab")
    assert (line.bot, line.forfeits, line.resigned) == ("a", 1, 1)


def test_fewer_forfeits_stand_higher() -> None:
    results = (result("ab", 2, 2, left="a", ending="NEVER_SAT"), result("ab", 2, 2))
    assert places(*results, criteria=("points", "forfeits")) == {"b": 1, "a": 2}


def test_the_lot_is_drawn_from_the_seed_and_can_be_drawn_again() -> None:
    level = result("abcdefgh", *[1] * 8)
    assert places(level, criteria=("lot",), seed="x") == places(level, criteria=("lot",), seed="x")
    assert places(level, criteria=("lot",), seed="x") != places(level, criteria=("lot",), seed="y")
    assert len(set(places(level, criteria=("lot",)).values())) == 8


def test_the_better_seed_stands_higher() -> None:
    assert [line.bot for line in rank_entrants([result("ab", 1, 1)], "ba", ("points", "seed"))] == ["b", "a"]


def test_each_criterion_has_words_of_its_own() -> None:
    assert list(TIE_BREAK_WORDS) == list(TIE_BREAKS)
    assert len(set(TIE_BREAK_WORDS.values())) == len(TIE_BREAKS)


@pytest.mark.parametrize("name", TIE_BREAKS)
def test_every_criterion_can_be_asked_of_a_season_of_nothing(name: str) -> None:
    assert len(rank_entrants([], "ab", (name,))) == 2


def test_a_format_may_say_itself_who_came_where() -> None:
    lines = standings_in_order([result("ab", 1, 2)], [("b",), ("a", "c")], [(1, "c")])
    assert [(line.rank, line.bot, line.matches) for line in lines] == [(1, "b", 1), (2, "a", 1), (2, "c", 0)]


def test_a_bot_at_several_seats_has_their_mean() -> None:
    assert table_scores([result("abab", 8, 1, 4, 3)])["a"].points == 6.0


def test_the_crosstable_has_both_sides_of_each_pair() -> None:
    cells = build_crosstable([result("ab", 5, 3), result("bac", 4, 4, 0), result("ab", 1, 7)])
    assert cells["a", "b"] == CrosstableCell(matches=3, ahead=1, level=1, difference=pytest.approx(-4 / 3))
    assert (cells["b", "a"].ahead, cells["b", "a"].behind) == (1, 1)
    assert (cells["a", "b"].share, cells["c", "a"].share, CrosstableCell().share) == (0.5, 0.0, 0.0)
    assert ("c", "c") not in cells
    assert cells["c", "a"].difference == -4


def test_a_bot_does_not_meet_itself() -> None:
    assert set(build_crosstable([result("abab", 1, 2, 3, 4)])) == {("a", "b"), ("b", "a")}
