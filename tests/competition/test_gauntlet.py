"""Gauntlets: each challenger meets each of the field equally often, from every seat."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from seatwise_server.competition.schedules.round_robin import Gauntlet
from seatwise_server.competition.schedules.schedule import BadSchedule, Duplicate, SoFar

FIELD = tuple(f"bots/f{number}/versions/1" for number in range(7))
NEW = ("bots/new/versions/1", "bots/newer/versions/1")


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_one_of_the_field_is_met_equally_often(size: int) -> None:
    plan = Gauntlet(NEW, FIELD, size)
    for challenger in NEW:
        tables = [match.bots for match in plan.all_matches() if challenger in match.bots]
        met = Counter(bot for bots in tables for bot in bots if bot in FIELD)
        assert set(met.values()) == {size * (size - 1)}
        seats = Counter(bots.index(challenger) for bots in tables)
        assert set(seats.values()) == {7}


def test_challengers_do_not_meet_each_other() -> None:
    assert all(len(set(match.bots) & set(NEW)) == 1 for match in Gauntlet(NEW, FIELD, 4).all_matches())


def test_at_tables_of_four_the_company_changes() -> None:
    tables = [match.bots for match in Gauntlet(NEW[:1], FIELD, 4).all_matches()]
    pairs = Counter(frozenset(pair) for bots in tables for pair in combinations(set(bots) - {NEW[0]}, 2))
    assert len(pairs) > 14  # one order of the field has seven neighbours, and as many next but one


def test_a_deal_travels_between_challengers_whose_tables_have_nobody_in_common() -> None:
    sets: dict[str, list[str]] = {}
    for match in Gauntlet(NEW, FIELD, 3).all_matches():
        assert match.deal is not None
        sets.setdefault(match.deal.set, []).extend(match.bots)
    assert all(len(met) == 6 == len(set(met)) for met in sets.values())


def test_in_a_rotation_each_of_the_field_takes_one_deal() -> None:
    plan = Gauntlet(NEW[:1], FIELD, duplicate=Duplicate.ROTATION)
    assert len(plan.all_matches()) == plan.expected_matches(SoFar()) == 14


def test_as_many_rounds_are_played_as_wanted() -> None:
    assert len(Gauntlet(NEW[:1], FIELD, rounds=5).due_matches(SoFar())) == 5


def test_a_match_that_was_played_is_not_due() -> None:
    plan = Gauntlet(NEW[:1], FIELD, rounds=5)
    voids = ["r1-t1", "r1-t1.2", "r1-t1.3"]
    assert len(plan.due_matches(SoFar(voids=voids))) == plan.expected_matches(SoFar(voids=voids)) == 4


def test_the_balance_of_the_field_can_be_printed() -> None:
    matches, *_ = Gauntlet(NEW, FIELD, 3).measure_balance()
    assert str(matches) == "matches of each: 6 (mean 6.00; as even as can be)"


def test_settings_that_make_no_gauntlet_are_named() -> None:
    with pytest.raises(BadSchedule, match="challengers: at least one is needed"):
        Gauntlet((), FIELD)
    with pytest.raises(BadSchedule, match="field: at least 3 are needed, not 2"):
        Gauntlet(NEW, FIELD[:2], 4)
