"""Round robins: everybody meets everybody equally often, as far as arithmetic allows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from random import Random

import pytest
from matches.effort import FULL

from seatwise_server.competition.designs import lightest_tables
from seatwise_server.competition.designs.cyclic_design import DesignRound
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.equitable_seats import even_out_seats
from seatwise_server.competition.schedules.round_robin import RoundRobin
from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    ScheduledMatch,
    SoFar,
    find_results,
)


def bots(count: int) -> tuple[str, ...]:
    return tuple(f"bots/b{number}/versions/1" for number in range(count))


def won_by_the_first(match: ScheduledMatch, seq: int = 1) -> LoggedResult:
    size = len(match.bots)
    return LoggedResult(
        seq,
        f"matches/{seq}",
        match.bots,
        tuple(range(size, 0, -1)),
        tuple(range(1, size + 1)),
        ("COMPLETED",) * size,
    )


@pytest.mark.parametrize(
    ("entrants", "size"),
    [
        (2, 2),
        (7, 2),
        (32, 2),
        (3, 3),
        (7, 3),
        (9, 3),
        (12, 3),
        (4, 4),
        (5, 4),
        (8, 4),
        (12, 4),
        (13, 4),
        pytest.param(32, 4, marks=pytest.mark.slow),
    ],
)
def test_all_pairs_meet_equally_often_in_one_cycle(entrants: int, size: int) -> None:
    plan = RoundRobin(bots(entrants), size)
    meetings = Counter(
        frozenset(pair) for match in plan.all_matches() for pair in combinations(match.bots, 2)
    )
    assert set(meetings.values()) == {size - 1}
    assert len(meetings) == entrants * (entrants - 1) // 2


@pytest.mark.parametrize(("entrants", "size"), [(5, 3), (6, 4), (11, 4), (8, 3)])
def test_where_seats_stay_free_pairs_differ_by_one_at_most(entrants: int, size: int) -> None:
    matches, meetings, _, _ = RoundRobin(bots(entrants), size).measure_balance()
    assert matches.is_even
    assert meetings.is_even


@pytest.mark.parametrize(
    ("entrants", "size"),
    [(5, 4), (7, 3), (9, 3), (8, 2), (13, 4), (19, 3), pytest.param(29, 4, marks=pytest.mark.slow)],
)
def test_where_arithmetic_allows_it_every_pair_meets_in_every_relation(entrants: int, size: int) -> None:
    assert all(spread.is_even for spread in RoundRobin(bots(entrants), size).measure_balance())


@pytest.mark.parametrize(
    ("entrants", "size"), [pytest.param(32, 4, marks=pytest.mark.slow), (16, 4), (24, 3)]
)
def test_nine_in_ten_relations_of_a_large_field_are_even(entrants: int, size: int) -> None:
    *_, relations, seats = RoundRobin(bots(entrants), size).measure_balance()
    assert relations.mean_deviation <= 0.1
    assert relations.most - relations.least <= 2
    assert seats.is_even


@pytest.mark.parametrize(
    ("entrants", "size", "rounds"),
    [pytest.param(32, 4, 5, marks=pytest.mark.slow), (13, 4, 6), (32, 2, 10), (9, 3, 4), (4, 4, 5)],
)
def test_a_part_of_a_cycle_is_even_too(entrants: int, size: int, rounds: int) -> None:
    matches, meetings, _, _ = RoundRobin(bots(entrants), size, rounds).measure_balance()
    assert matches.is_even
    assert meetings.is_even


def test_no_bot_plays_twice_in_a_round() -> None:
    for entrants, size, count in ((11, 2, 0), (8, 3, 0), (13, 4, 0), (11, 3, 5)):
        rounds: dict[int, list[str]] = {}
        for match in RoundRobin(bots(entrants), size, count).all_matches():
            rounds.setdefault(match.round, []).extend(match.bots)
        assert all(len(set(players)) == len(players) for players in rounds.values())


def test_four_bots_play_all_twenty_four_orders_of_seats() -> None:
    spreads = RoundRobin(bots(4), 4, rounds=24).measure_balance()
    assert [(spread.least, spread.most) for spread in spreads] == [(24, 24), (24, 24), (8, 8), (6, 6)]


def test_the_imbalance_can_be_printed() -> None:
    lines = list(map(str, RoundRobin(bots(10), 4).measure_balance()))
    assert lines[0] == "matches of each: 8 (mean 8.00; as even as can be)"
    assert lines[1] == "meetings of each pair: 2 to 3 (mean 2.67; as even as can be)"


@pytest.mark.slow
def test_thirty_two_bots_at_tables_of_four_take_moments() -> None:
    started = time.process_time()
    plan = RoundRobin(bots(32), 4, seed="a seed that no other test has")
    assert len(plan.all_matches()) == 248
    assert time.process_time() - started < 5


def test_the_same_seed_draws_the_same_and_another_one_differently() -> None:
    first, again, other = (RoundRobin(bots(9), 3, seed=seed).all_matches() for seed in ("a", "a", "b"))
    assert first == again
    assert first != other


def test_a_deal_travels_to_all_tables_of_a_round_and_no_bot_meets_it_twice() -> None:
    sets: dict[str, list[ScheduledMatch]] = {}
    for match in RoundRobin(bots(12), 4).all_matches():
        assert match.deal is not None
        sets.setdefault(match.deal.set, []).append(match)
    assert {len(matches) for matches in sets.values()} == {3}
    for matches in sets.values():
        met = [bot for match in matches for bot in match.bots]
        assert len(set(met)) == len(met)
        assert [match.deal and match.deal.number for match in matches] == [1, 2, 3]


def test_in_a_rotation_every_bot_plays_a_deal_from_every_seat() -> None:
    sets: dict[str, list[ScheduledMatch]] = {}
    for match in RoundRobin(bots(9), 3, duplicate=Duplicate.ROTATION).all_matches():
        assert match.deal is not None
        sets.setdefault(match.deal.set, []).append(match)
    for matches in sets.values():
        assert all(len({match.bots[seat] for match in matches}) == 3 for seat in range(3))
        assert len({frozenset(match.bots) for match in matches}) == 1
        assert [match.deal and match.deal.size for match in matches] == [3, 3, 3]


def test_a_deal_that_stays_at_one_table_is_no_duplicate() -> None:
    assert all(match.deal is None for match in RoundRobin(bots(5), 4).all_matches())


def test_a_match_with_a_result_is_not_due_again() -> None:
    plan = RoundRobin(bots(5), 2)
    played = {match.id: won_by_the_first(match) for match in plan.due_matches(SoFar())[:4]}
    due = plan.due_matches(SoFar(played))
    assert len(due) == 6
    assert not played.keys() & {match.id for match in due}


def test_a_void_match_is_played_again_until_it_is_given_up() -> None:
    plan = RoundRobin(bots(2), 2)
    voids: list[str] = []
    for attempt in ("r1-t1", "r1-t1.2", "r1-t1.3"):
        [match] = plan.due_matches(SoFar(voids=voids))
        assert match.id == attempt
        voids.append(match.id)
    assert plan.due_matches(SoFar(voids=voids)) == ()
    assert plan.expected_matches(SoFar(voids=voids)) == 0


def test_the_result_of_a_replay_is_that_of_the_match() -> None:
    plan = RoundRobin(bots(2), 2)
    [match] = plan.due_matches(SoFar(voids=["r1-t1"]))
    result = won_by_the_first(match)
    assert find_results(plan.all_matches()[:1], SoFar({match.id: result}, ["r1-t1"])) == (result,)


@pytest.mark.parametrize(
    ("entrants", "size", "rounds", "message"),
    [
        (bots(3), 4, 0, "entrants: at least 4 are needed, not 3"),
        (bots(8), 5, 0, "table_size: must be one of 2, 3, 4, not 5"),
        (bots(8), 4, -1, "rounds: must be 0 or more, not -1"),
        ((*bots(4), bots(1)[0]), 4, 0, "entrants: bots/b0/versions/1 is among them twice"),
    ],
)
def test_settings_that_make_no_schedule_are_named(
    entrants: tuple[str, ...], size: int, rounds: int, message: str
) -> None:
    with pytest.raises(BadSchedule, match=message):
        RoundRobin(entrants, size, rounds)


# Seats come first


def seat_counts(tables: Iterable[Sequence[str]]) -> dict[str, list[int]]:
    """How often each bot sits at each seat."""
    counts: dict[str, list[int]] = {}
    for seated in tables:
        for seat, bot in enumerate(seated):
            counts.setdefault(bot, [0] * len(seated))[seat] += 1
    return counts


def assert_even_seats(tables: Iterable[Sequence[str]]) -> None:
    for bot, counts in seat_counts(tables).items():
        assert max(counts) - min(counts) <= 1, bot


@pytest.mark.sampled
@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_bot_sits_at_every_seat_equally_often_or_once_more(size: int) -> None:
    longest = [(9, 5)] if FULL else []
    for entrants, rounds in [*((each, 0) for each in range(size, 8)), (14, 1), *longest]:
        assert_even_seats(match.bots for match in RoundRobin(bots(entrants), size, rounds).all_matches())


@pytest.mark.parametrize("size", [2, 3, 4])
def test_seats_of_any_tables_at_all_can_be_made_even(size: int) -> None:
    """Some bots play often, some hardly ever, and all begin at the first seats."""
    chance = Random(size)
    for _ in range(30):
        names = bots(size + int(chance.random() * 6))
        tables = [tuple(sorted(chance.sample(names, size))) for _ in range(int(chance.random() * 40))]
        seated = even_out_seats(tables)
        assert_even_seats(seated)
        assert [sorted(each) for each in seated] == [sorted(each) for each in tables]


def test_a_rotation_looks_at_relations_only() -> None:
    spreads = RoundRobin(bots(10), 4, duplicate=Duplicate.ROTATION).measure_balance()
    assert spreads[3].is_even
    assert spreads[2].mean_deviation < 1


def test_a_large_plan_is_seated_in_turn_and_is_nearly_as_even(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "seatwise_server.competition.schedules.equitable_seats.MOST_SEATED_TABLES"
    monkeypatch.setattr(module, 100)
    *_, relations, seats = RoundRobin(bots(32), 4, 62, seed="in turn").measure_balance()
    assert seats.is_even
    assert relations.most - relations.least <= 4
    assert relations.mean_deviation < 0.7


@pytest.mark.slow
def test_three_hundred_entrants_are_planned_for_many_rounds_in_moments() -> None:
    started = time.process_time()
    plan = RoundRobin(bots(300), 2, 100)
    assert len(plan.all_matches()) == 15_000
    assert_even_seats(match.bots for match in plan.all_matches())
    assert time.process_time() - started < 60


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_hundred_entrants_are_planned_for_ten_thousand_rounds() -> None:
    plan = RoundRobin(bots(300), 4, 10_000)
    assert len(plan.all_matches()) == 750_000
    assert_even_seats(match.bots for match in plan.all_matches())


def test_rounds_are_taken_back_to_the_most_even_ones_that_were_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fourteen entrants never reach the bound in five rounds of three tables of four, so the search wanders to its end."""
    searches = []
    best_rounds = lightest_tables._RoundSearch.best_rounds

    def watch_search(search: lightest_tables._RoundSearch) -> tuple[DesignRound, ...]:
        searches.append((search._least, search._cost))
        found = best_rounds(search)
        searches.append((search._least, search._cost))
        return found

    monkeypatch.setattr(lightest_tables._RoundSearch, "best_rounds", watch_search)
    lightest_tables.even_out_rounds((), [tuple(tuple(range(at, at + 4)) for at in (0, 4, 8))] * 5, 14)
    [(least, before), (_, after)] = searches
    assert (before > least, after == least) == (True, True)
