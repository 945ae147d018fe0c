"""One pass of a ladder's pairing, and what many of them come to."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matches.effort import examples
from seasons.virtual_ladder import Ladder, plackett_luce

from seatwise_server.ladder.ladder_pairing import (
    RATING_PATIENCE_S,
    AttendingBot,
    PairingRules,
    assign_rarest_seats,
)
from seatwise_server.ladder.ladder_worker import check_ladder


def bots(count: int, **of_all: object) -> list[AttendingBot]:
    """Of as many owners, ten points of rating apart."""
    waiting = [AttendingBot(f"bots/b{n:05}/versions/1", 10.0 * n, owner=f"owner{n}") for n in range(count)]
    return [replace(bot, **of_all) for bot in waiting]  # type: ignore[arg-type]


def numbers(tables: list[tuple[str, ...]]) -> list[set[int]]:
    return [{int(bot.split("/")[1][1:]) for bot in table} for table in tables]


@st.composite
def floors(draw: st.DrawFn) -> list[AttendingBot]:
    """Any mixture of bots that wait and play, owners, memories and seats."""
    count = draw(st.integers(0, 30))
    chance = random.Random(draw(st.integers(0, 10**6)))
    names = [f"bots/b{n:05}/versions/1" for n in range(count)]
    return [
        AttendingBot(
            bot=name,
            rating=round(chance.gauss(25, 5)),
            waited_s=chance.choice((0.0, 1.0, 4.0, 30.0)),
            owner=f"owner{chance.randrange(6)}" if chance.random() < 0.9 else "",
            recent_opponents=tuple(chance.sample(names, min(count, 9))),
            seat_counts=tuple(chance.randrange(5) for _ in range(4)),
            barred=frozenset(chance.sample(names, min(count, chance.choice((0, 0, 3, 9))))) - {name},
            free_matches=chance.choice((0, 1, 3)),
        )
        for name in names
    ]


@settings(max_examples=examples(200, 60))
@given(floors(), st.integers(2, 4), st.integers(0, 8), st.booleans())
def test_a_pass_gives_only_tables_that_are_allowed(
    floor: list[AttendingBot], seats: int, room: int, apart: bool
) -> None:
    by_name = {bot.bot: bot for bot in floor}
    tables = PairingRules(seats, owners_apart=apart).pair_tables(floor, room)
    at_tables = [bot for table in tables for bot in table]
    assert len(tables) <= room
    assert all(len(table) == seats for table in tables)
    assert len(at_tables) == len(set(at_tables))
    assert all(by_name[bot].free_matches for bot in at_tables)
    for table in tables:
        owners = [by_name[bot].owner for bot in table if by_name[bot].owner]
        assert len(owners) == len(set(owners)) or not apart
        assert not any(other in by_name[bot].barred for bot in table for other in table)


@given(floors(), st.integers(2, 4), st.randoms())
def test_a_pass_depends_upon_nothing_but_who_attends(
    floor: list[AttendingBot], seats: int, chance: random.Random
) -> None:
    """Not on the order in which they are named, unless two have waited equally long."""
    floor = [replace(bot, waited_s=n / 7) for n, bot in enumerate(floor)]
    tables = PairingRules(seats).pair_tables(floor, 100)
    chance.shuffle(floor)
    assert PairingRules(seats).pair_tables(floor, 100) == tables


@given(floors(), st.integers(2, 4), st.booleans())
def test_a_bot_out_of_patience_is_paired_where_a_table_can_be_filled(
    floor: list[AttendingBot], seats: int, apart: bool
) -> None:
    """Whatever their ratings are, whomever they met: what is left over has too few owners for a table."""
    floor = [replace(bot, barred=frozenset()) for bot in floor]
    tables = PairingRules(seats, owners_apart=apart).pair_tables(floor, 100)
    at_tables = {bot for table in tables for bot in table}
    left = [bot for bot in floor if bot.free_matches and bot.bot not in at_tables]
    if any(bot.waited_s >= RATING_PATIENCE_S for bot in left):
        parties = {bot.owner or bot.bot if apart else bot.bot for bot in left}
        assert len(parties) < seats


def test_neighbours_in_rating_meet() -> None:
    assert numbers(PairingRules(4).pair_tables(bots(8), 2)) == [{0, 1, 2, 3}, {4, 5, 6, 7}]


def test_a_bot_that_has_waited_longest_is_served_first_and_in_the_middle_of_its_company() -> None:
    floor = [replace(bot, waited_s=float(n == 10)) for n, bot in enumerate(bots(20))]
    [table] = numbers(PairingRules(3).pair_tables(floor, 1))
    assert table == {9, 10, 11}


def test_a_bot_looks_further_the_longer_it_waits() -> None:
    """The others are at tables: only the ends of the ladder are free."""
    ends = [replace(bot, free_matches=int(n in (0, 39))) for n, bot in enumerate(bots(40))]
    waits = [
        wait
        for wait in range(30)
        if PairingRules(2).pair_tables([replace(bot, waited_s=float(wait)) for bot in ends], 1)
    ]
    assert waits
    assert 3 <= waits[0] <= RATING_PATIENCE_S
    assert waits == list(range(waits[0], 30))


def test_places_count_so_the_top_is_not_alone() -> None:
    floor = bots(8)
    floor[7] = replace(floor[7], rating=10_000.0)
    assert {5, 6, 7} in numbers(
        PairingRules(3).pair_tables([replace(bot, waited_s=bot.rating) for bot in floor], 8)
    )


def test_the_last_opponents_are_avoided_where_others_attend() -> None:
    floor = bots(40)
    floor[0] = replace(floor[0], recent_opponents=(floor[1].bot, floor[2].bot), waited_s=1.0)
    assert {0, 3} in numbers(PairingRules(2).pair_tables(floor, 40))
    assert {0, 1} in numbers(PairingRules(2).pair_tables(floor[:2], 40)), "nobody else is there"


def test_a_meeting_that_only_the_other_remembers_counts_too() -> None:
    floor = bots(40)
    floor[1] = replace(floor[1], recent_opponents=(floor[0].bot,))
    floor[0] = replace(floor[0], waited_s=1.0)
    assert {0, 2} in numbers(PairingRules(2).pair_tables(floor, 40))


def test_those_who_play_count_among_those_who_attend() -> None:
    """Four that come from one table are not seated together again while forty others are about to be free."""
    four = bots(4)
    names = tuple(bot.bot for bot in four)
    four = [replace(bot, recent_opponents=tuple(name for name in names if name != bot.bot)) for bot in four]
    playing = [replace(bot, free_matches=0) for bot in bots(44)[4:]]
    assert PairingRules(4).pair_tables(four + playing, 10) == []
    assert len(PairingRules(4).pair_tables(four, 10)) == 1


@pytest.mark.parametrize("seats", [2, 3])
def test_two_of_one_owner_meet_only_where_the_ladder_allows_it(seats: int) -> None:
    floor = bots(6, owner="one")
    assert PairingRules(seats).pair_tables([replace(bot, waited_s=1e6) for bot in floor], 9) == []
    assert len(PairingRules(seats, owners_apart=False).pair_tables(floor, 9)) == 6 // seats


@pytest.mark.parametrize("waited_s", [1.0, 1e6])
def test_two_that_have_met_too_often_are_not_seated_however_long_they_wait(waited_s: float) -> None:
    floor = bots(4, waited_s=waited_s)
    floor[0] = replace(floor[0], barred=frozenset({floor[1].bot}))
    assert PairingRules(2).pair_tables(floor[:2], 9) == []
    assert {frozenset(table) for table in numbers(PairingRules(2).pair_tables(floor, 9))} in (
        {frozenset({0, 2}), frozenset({1, 3})},
        {frozenset({0, 3}), frozenset({1, 2})},
    )


def test_a_barred_bot_at_the_head_does_not_hide_the_others_of_its_owner() -> None:
    friend = AttendingBot(
        "bots/friend/versions/1", 25.0, 90.0, "friend", barred=frozenset({"bots/b00000/versions/1"})
    )
    floor = [
        *bots(1, waited_s=100.0),
        friend,
        replace(friend, bot="bots/second/versions/1", waited_s=30.0, barred=frozenset()),
    ]
    assert PairingRules(2).pair_tables(floor, 9) == [("bots/b00000/versions/1", "bots/second/versions/1")]


def test_bots_of_nobody_are_not_one_owners() -> None:
    assert len(PairingRules(4).pair_tables(bots(4, owner=""), 9)) == 1


def test_an_owners_thousand_bots_keep_nobody_from_a_table() -> None:
    flood = [replace(bot, owner="one", rating=25.0, waited_s=100.0) for bot in bots(2000)]
    names = [
        f"bots/b{200 * n + 100:05}h/versions/1" for n in range(9)
    ]  # two hundred of the flood between any two
    honest = [AttendingBot(name, rating=25.0, waited_s=30.0, owner=name) for name in names]
    tables = PairingRules(4).pair_tables(flood + honest, 1000)
    assert {bot.bot for bot in honest} <= {bot for table in tables for bot in table}


def test_seats_go_to_those_who_have_had_them_least() -> None:
    counts = [(3, 0, 3, 3), (3, 3, 0, 3), (0, 3, 3, 3), (3, 3, 3, 0)]
    table = assign_rarest_seats(
        [replace(bot, seat_counts=seats) for bot, seats in zip(bots(4), counts, strict=True)]
    )
    assert numbers([(bot,) for bot in table]) == [{2}, {0}, {1}, {3}]


def ladder(count: int, seats: int, seed: int, room: int = 1000, owners: int = 1000) -> Ladder:
    chance = random.Random(seed)
    names = [f"bots/b{n:03}/versions/1" for n in range(count)]
    strength = {name: chance.gauss(0, 1) for name in names} | {"bots/new/versions/1": 3.0}
    of = {name: f"owner{n % owners}" for n, name in enumerate(names)}
    return Ladder(PairingRules(seats), plackett_luce(strength), of, seed, room)


@pytest.mark.parametrize("seats", [2, 3, 4])
@pytest.mark.parametrize("room", [1000, 5])
def test_all_have_equal_chances_to_play_and_every_seat_as_often(seats: int, room: int) -> None:
    """With tables for all, and with tables for a part of them."""
    run = ladder(40, seats, seed=seats, room=room)
    run.run(600)
    forms = [run.forms.form_of(bot) for bot in run.owners]
    played = [form.matches for form in forms]
    assert min(played) > 0.8 * sum(played) / len(played)
    assert max(played) < 1.2 * sum(played) / len(played)
    assert max(max(form.seat_counts[:seats]) - min(form.seat_counts[:seats]) for form in forms) <= 3


def test_repeats_are_bounded_and_all_meet_many() -> None:
    run = ladder(40, 4, seed=1)
    run.run(400)
    meetings = [
        (result.match, bot, other) for result in run.log for bot in result.bots for other in result.bots
    ]
    last: dict[tuple[str, str], int] = {}
    played = dict.fromkeys(run.owners, 0)
    again = 0
    for result in run.log:
        for bot in result.bots:
            again += sum(
                played[bot] - last.get((bot, other), -9) <= 3 for other in result.bots if other != bot
            )
            last |= {(bot, other): played[bot] for other in result.bots}
            played[bot] += 1
    assert again < 0.02 * len(meetings)
    assert all(len({other for _, bot, other in meetings if bot == own}) > 15 for own in run.owners)


def test_the_strongest_the_weakest_and_the_newest_wait_no_longer_than_others() -> None:
    run = ladder(40, 4, seed=3)
    run.run(300)
    run.come("bots/new/versions/1", "new")
    run.run(300)
    by_rating = sorted(run.owners, key=lambda bot: run.ratings.rating_of(bot).mu)
    assert by_rating[-1] == "bots/new/versions/1"
    assert all(run.longest_wait[bot] <= RATING_PATIENCE_S for bot in (by_rating[0], *by_rating[-3:]))
    assert (
        run.forms.form_of("bots/new/versions/1").matches > 0.7 * run.forms.form_of(by_rating[20]).matches / 2
    )


def test_opponents_come_nearer_as_ratings_part() -> None:
    """A table's bots are much nearer to each other in the end than any four would be."""
    run = ladder(40, 4, seed=4)
    run.run(500)
    strength = {bot: run.ratings.rating_of(bot).mu for bot in run.owners}
    late = run.log[len(run.log) // 2 :]
    near = sum(
        max(map(strength.__getitem__, r.bots)) - min(map(strength.__getitem__, r.bots)) for r in late
    ) / len(late)
    anyone = sum(b - a for a, b in pairwise(sorted(strength.values()))) * 3 / 5
    assert near < 0.75 * anyone


@pytest.mark.slow
@pytest.mark.parametrize("owners", [1, 5, 3000, 10_000])
@pytest.mark.parametrize("waited", [1.0, 60.0])
def test_ten_thousand_are_paired_in_a_moment_whoever_owns_them(owners: int, waited: float) -> None:
    """`tests/bench/ladders.py` has the figure; this bound is for machines that have other things to do."""
    chance = random.Random(1)
    names = [bot.bot for bot in bots(10_000)]
    floor = [
        AttendingBot(
            name,
            chance.gauss(25, 6),
            chance.random() * waited,
            f"o{n % owners}",
            tuple(chance.sample(names, 9)),
        )
        for n, name in enumerate(names)
    ]
    began = time.process_time()
    PairingRules(4).pair_tables(floor, 10_000)
    assert time.process_time() - began < 1.0


NAMES = [f"bots/b{n:03}/versions/1" for n in range(20)]
MASTER, FRIENDS = NAMES[10], NAMES[13:15]


def ladder_with_friends(seed: int, *, at_night: bool) -> Ladder:
    """Twenty bots, a tenth of a log-odds apart, of which two lose to a third on purpose. For half of the time these are alone, or nobody is there."""
    honest = plackett_luce({name: -0.1 * n for n, name in enumerate(NAMES)})

    def play(bots: Sequence[str], chance: random.Random) -> tuple[int, ...]:
        ranks = dict(zip(bots, honest(bots, chance), strict=True))
        for friend in FRIENDS:
            if {friend, MASTER} <= ranks.keys() and ranks[friend] < ranks[MASTER]:
                ranks[friend], ranks[MASTER] = ranks[MASTER], ranks[friend]
        return tuple(ranks.values())

    run = Ladder(PairingRules(2), play, {name: name for name in NAMES}, seed)
    for _ in range(10):
        run.away = frozenset()
        run.run(600)
        run.away = frozenset(NAMES).difference([MASTER, *FRIENDS] if at_night else [])
        run.run(600)
    return run


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_friends_that_attend_alone_at_night_lift_a_bot_by_at_most_one_place_more() -> None:
    """And the pair is named. For docs/statistics.md."""
    places = {}
    for at_night in (False, True):
        runs = [ladder_with_friends(seed, at_night=at_night) for seed in range(16)]
        found = [[bot for bot, _ in run.ratings.ranked_bots()].index(MASTER) + 1 for run in runs]
        named = [_list_named(run) for run in runs]
        places[at_night] = sum(found) / len(found)
        right = sum(any(pair in names for pair in FRIENDLY) for names in named)
        wrong = sum(not names <= FRIENDLY for names in named)
        print(
            f"at night {at_night}: place {places[at_night]:.1f}, {found}, named {right}, others {wrong}",
            flush=True,
        )
        assert right >= 13
        assert wrong <= 3
    assert places[True] >= places[False] - 1


FRIENDLY = {(MASTER, friend) for friend in FRIENDS}


def _list_named(run: Ladder) -> set[tuple[str, str]]:
    run.away = frozenset()
    run.run(600)  # one day more: the look at 5,000 results is due
    found = check_ladder(run.log).favours
    return {(each.taker, each.giver) for each in found if each.is_remarkable}
