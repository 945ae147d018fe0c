"""Knockouts: the best seeds meet last, and from every match that failed there is a way on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, zip_longest
from random import Random

import pytest
from matches.effort import FULL

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.knockout import Knockout
from seatwise_server.competition.schedules.schedule import BadSchedule, Duplicate, ScheduledMatch, SoFar


def bots(count: int) -> tuple[str, ...]:
    return tuple(f"bots/b{number:02}/versions/1" for number in range(count))


def number(bot: str) -> int:
    return int(bot.split("/")[1][1:])


def by_name(match: ScheduledMatch) -> LoggedResult:
    return with_points(match, *(100 - number(bot) for bot in match.bots))


def with_points(match: ScheduledMatch, *points: int, endings: tuple[str, ...] | None = None) -> LoggedResult:
    left = endings or ("COMPLETED",) * len(points)
    merits = [(ending == "COMPLETED", own) for own, ending in zip(points, left, strict=True)]
    ranks = tuple(1 + sum(other > own for other in merits) for own in merits)
    return LoggedResult(1, "matches/x", match.bots, points, ranks, left)


def season(
    plan: Knockout, play: Callable[[ScheduledMatch], LoggedResult] = by_name
) -> dict[str, LoggedResult]:
    results: dict[str, LoggedResult] = {}
    while due := plan.due_matches(SoFar(results)):
        results |= {match.id: play(match) for match in due}
    return results


def numbers(matches: tuple[ScheduledMatch, ...]) -> list[list[int]]:
    return [sorted(map(number, match.bots)) for match in matches]


def test_the_first_round_pairs_best_and_last() -> None:
    assert numbers(Knockout(bots(8)).due_matches(SoFar())) == [[0, 7], [1, 6], [2, 5], [3, 4]]


def test_without_surprises_the_best_two_meet_in_the_end() -> None:
    results = season(Knockout(bots(8)))
    assert len(results) == Knockout(bots(8)).expected_matches(SoFar()) == 7
    assert sorted(map(number, results["r3-t1-g1"].bots)) == [0, 1]
    assert sorted(map(number, results["r2-t1-g1"].bots)) == [0, 3]


def test_bots_that_went_out_together_share_a_place() -> None:
    order = Knockout(bots(8)).final_order(SoFar(season(Knockout(bots(8)))))
    assert [list(map(number, group)) for group in order] == [[0], [1], [2, 3], [4, 5, 6, 7]]


def test_the_best_seeds_have_the_byes_and_only_in_the_first_round() -> None:
    plan = Knockout(bots(11))
    results = season(plan)
    assert [number(bot) for _, bot in plan.list_byes(SoFar(results))] == [0, 1, 2, 3, 4]
    assert {round_ for round_, _ in plan.list_byes(SoFar(results))} == {1}
    assert len(results) == 10


@pytest.mark.parametrize(("entrants", "size", "advance"), [(16, 4, 2), (8, 4, 2), (27, 3, 1), (16, 4, 1)])
def test_at_larger_tables_the_best_win_too(entrants: int, size: int, advance: int) -> None:
    plan = Knockout(bots(entrants), size, advance)
    results = season(plan)
    order = plan.final_order(SoFar(results))
    assert number(order[0][0]) == 0
    assert sum(map(len, order)) == entrants
    assert all(len(result.bots) == size for result in results.values())
    assert plan.expected_matches(SoFar()) == len(results)


def test_a_table_with_empty_places_is_played_by_those_who_are_there() -> None:
    plan = Knockout(bots(7), 4, 2)
    assert numbers(plan.due_matches(SoFar())) == [[0, 3, 4], [1, 2, 5, 6]]


def test_where_not_more_sit_than_go_on_nobody_plays() -> None:
    plan = Knockout(bots(5), 4, 2)
    assert numbers(plan.due_matches(SoFar())) == [[2, 3, 4]]
    assert [number(bot) for _, bot in plan.list_byes(SoFar())] == [0, 1]


KINDS = ((2, 1), (3, 1), (4, 1), (4, 2))
FIELDS = tuple(range(2, 129)) if FULL else (*range(2, 20), 31, 32, 33, 63, 64, 65, 127, 128)
SMALL_FIELDS = tuple(each for each in FIELDS if each < 40)
NOBODY = 1000


def first_opponents(entrants: int, size: int, advance: int) -> list[list[int]]:
    """By seed, its opponents in the first round, the best first; none for a bye."""
    plan = Knockout(bots(entrants), size, advance)
    tables = numbers(plan.due_matches(SoFar()))
    at_table = {each: [other for other in table if other != each] for table in tables for each in table}
    assert {number(bot) for _, bot in plan.list_byes(SoFar())} == set(range(entrants)) - at_table.keys()
    return [at_table.get(each, []) for each in range(entrants)]


def has_it_harder(own: list[int], other: list[int]) -> bool:
    """A missing opponent is weaker than any other. So a bye is easier than any table."""
    pairs = list(zip_longest(own, other, fillvalue=NOBODY))
    return own != other and all(mine <= theirs for mine, theirs in pairs)


@pytest.mark.sampled
@pytest.mark.parametrize(("size", "advance"), KINDS)
def test_a_better_seed_never_has_it_harder(size: int, advance: int) -> None:
    for entrants in FIELDS:
        opponents = first_opponents(entrants, size, advance)
        for (one, own), (worse, other) in combinations(enumerate(opponents), 2):
            assert not has_it_harder(own, other), (entrants, one, worse)
            assert not own or other, f"of {entrants}, {one} plays and {worse} has a bye"
            if len(own) == len(other):
                assert sum(own) >= sum(other), (entrants, one, worse)


@pytest.mark.sampled
@pytest.mark.parametrize(("size", "advance"), KINDS)
def test_the_best_of_a_table_never_sits_at_a_larger_table_than_a_worse_one(size: int, advance: int) -> None:
    for entrants in FIELDS:
        opponents = first_opponents(entrants, size, advance)
        sizes = [len(own) for seed, own in enumerate(opponents) if not own or seed < min(own)]
        assert sizes == sorted(sizes), entrants


@pytest.mark.sampled
@pytest.mark.parametrize(("size", "advance"), KINDS)
def test_every_size_of_field_comes_to_its_end_with_the_best_seed_first(size: int, advance: int) -> None:
    for entrants in SMALL_FIELDS:
        plan = Knockout(bots(entrants), size, advance)
        results = season(plan)
        order = plan.final_order(SoFar(results))
        assert number(order[0][0]) == 0
        assert sum(map(len, order)) == entrants
        assert plan.expected_matches(SoFar()) == len(results)


@pytest.mark.sampled
@pytest.mark.parametrize(("size", "advance"), KINDS)
def test_if_favourites_win_a_better_seed_never_has_it_harder_in_any_round(size: int, advance: int) -> None:
    for entrants in [*SMALL_FIELDS, 48, *([128] if advance == 2 and FULL else [])]:
        plan, results = Knockout(bots(entrants), size, advance), {}
        while due := plan.due_matches(SoFar(results)):
            results |= {match.id: by_name(match) for match in due}
            others = {own: [each for each in table if each != own] for table in numbers(due) for own in table}
            for own, worse in combinations(sorted(others), 2):
                assert not has_it_harder(others[own], others[worse]), (entrants, own, worse)
                if len(others[own]) == len(others[worse]):
                    assert sum(others[own]) >= sum(others[worse])
        order = [number(bot) for group in plan.final_order(SoFar(results)) for bot in group]
        assert order == list(range(entrants))


@pytest.mark.slow
def test_no_bot_meets_the_bot_of_the_round_before_until_the_final() -> None:
    for entrants in range(5, 65):
        plan, results, met = Knockout(bots(entrants), 4, 2), {}, set()
        chance = Random(entrants)
        while len(due := plan.due_matches(SoFar(results))) > 1:
            results |= {
                match.id: with_points(match, *chance.sample(range(99), len(match.bots))) for match in due
            }
            now = {pair for table in numbers(due) for pair in combinations(table, 2)}
            assert not now & met, entrants
            met = now


def test_two_entrants_play_one_match() -> None:
    assert len(season(Knockout(bots(2)))) == 1
    assert len(season(Knockout(bots(2), 4, 2))) == 1


def test_those_who_came_first_and_second_at_a_table_meet_again_only_in_the_end() -> None:
    results = season(Knockout(bots(16), 4, 2))
    pairs = [{number(bot) for bot in results[f"r1-t{at}-g1"].bots if number(bot) < 8} for at in range(1, 5)]
    semifinals = [set(map(number, results[f"r2-t{at}-g1"].bots)) for at in (1, 2)]
    assert not any(pair <= table for pair in pairs for table in semifinals)


def test_a_void_match_is_played_again() -> None:
    plan = Knockout(bots(2))
    [match] = plan.due_matches(SoFar(voids=["r1-t1-g1"]))
    assert match.id == "r1-t1-g1.2"
    assert plan.final_order(SoFar({match.id: by_name(match)}, ["r1-t1-g1"]))[0] == (bots(2)[0],)


def test_where_all_was_void_the_better_seeds_go_on() -> None:
    plan = Knockout(bots(4))
    voids = ["r1-t1-g1", "r1-t1-g1.2", "r1-t1-g1.3"]
    other = next(match for match in plan.due_matches(SoFar()) if match.id == "r1-t2-g1")
    [final] = plan.due_matches(SoFar({other.id: by_name(other)}, voids))
    assert sorted(map(number, final.bots)) == [0, 1]


def test_the_one_who_forfeits_is_out_with_however_many_points() -> None:
    plan = Knockout(bots(2))
    [match] = plan.due_matches(SoFar())
    endings = tuple("TIMED_OUT" if number(bot) == 0 else "COMPLETED" for bot in match.bots)
    points = tuple(50 if number(bot) == 0 else 3 for bot in match.bots)
    assert plan.final_order(SoFar({match.id: with_points(match, *points, endings=endings)}))[0] == (
        bots(2)[1],
    )


def test_if_both_forfeit_the_later_one_goes_on() -> None:
    plan = Knockout(bots(2))
    [match] = plan.due_matches(SoFar())
    ranks = tuple(1 + (number(bot) == 0) for bot in match.bots)
    result = LoggedResult(1, "matches/x", match.bots, (7, 7), ranks, ("TIMED_OUT", "RESIGNED"))
    assert plan.final_order(SoFar({match.id: result}))[0] == (bots(2)[1],)


def test_level_ones_play_one_deal_more_and_then_the_seed_decides() -> None:
    plan = Knockout(bots(2))
    [match] = plan.due_matches(SoFar())
    level = {match.id: with_points(match, 5, 5)}
    [decider] = plan.due_matches(SoFar(level))
    assert decider.id == "r1-t1-last"
    assert plan.expected_matches(SoFar(level)) == 2
    won = with_points(decider, *(number(bot) for bot in decider.bots))
    assert plan.final_order(SoFar(level | {decider.id: won}))[0] == (bots(2)[1],)
    assert plan.final_order(SoFar(level | {decider.id: with_points(decider, 1, 1)}))[0] == (bots(2)[0],)


def test_a_decider_decides_only_between_those_who_were_level() -> None:
    plan = Knockout(bots(3), 3)
    [match] = plan.due_matches(SoFar())
    points = {0: 9, 1: 9, 2: 1}
    level = {match.id: with_points(match, *(points[number(bot)] for bot in match.bots))}
    [decider] = plan.due_matches(SoFar(level))
    last = with_points(decider, *({0: 1, 1: 2, 2: 50}[number(bot)] for bot in decider.bots))
    assert [number(bot) for [bot] in plan.final_order(SoFar(level | {decider.id: last}))] == [1, 0, 2]


def test_a_decider_is_void_too_and_played_again() -> None:
    plan = Knockout(bots(2))
    [match] = plan.due_matches(SoFar())
    level = {match.id: with_points(match, 5, 5)}
    [decider] = plan.due_matches(SoFar(level, ["r1-t1-last"]))
    assert decider.id == "r1-t1-last.2"


def test_several_deals_are_played_from_changing_seats() -> None:
    matches = Knockout(bots(2), deals=2).due_matches(SoFar())
    assert matches[0].bots == matches[1].bots[::-1]


def test_in_a_rotation_all_play_each_deal_from_each_seat() -> None:
    plan = Knockout(bots(4), 4, duplicate=Duplicate.ROTATION)
    matches = plan.due_matches(SoFar())
    assert len(matches) == plan.expected_matches(SoFar()) == 4
    assert len({match.bots[0] for match in matches}) == 4


def test_a_deal_travels_between_the_tables_of_a_round() -> None:
    matches = Knockout(bots(8), deals=2, duplicate=Duplicate.TRAVELLING).due_matches(SoFar())
    sets = {match.deal.set if match.deal else "" for match in matches}
    assert len(sets) == 2
    assert all(match.deal and match.deal.size == 4 for match in matches)


def test_a_deal_travels_only_between_tables_of_one_size() -> None:
    matches = Knockout(bots(7), 4, 2, duplicate=Duplicate.TRAVELLING).due_matches(SoFar())
    assert [match.deal for match in matches] == [None, None]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"table_size": 4, "advance": 3}, "advance: 4 must be a multiple of it, not 3"),
        ({"advance": 2}, "advance: 2 must be a multiple of it, not 2"),
        ({"deals": 0}, "deals: must be 1 or more, not 0"),
    ],
)
def test_settings_that_make_no_bracket_are_named(plan: dict[str, int], message: str) -> None:
    with pytest.raises(BadSchedule, match=message):
        Knockout(bots(8), **plan)  # type: ignore[arg-type]
