"""How the settings of a league become a schedule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from seasons.one_season import league_of

from seatwise_server.competition.schedules.ab_test import ABTest
from seatwise_server.competition.schedules.knockout import Knockout
from seatwise_server.competition.schedules.round_robin import Gauntlet, RoundRobin
from seatwise_server.competition.schedules.schedule import BadSchedule
from seatwise_server.competition.schedules.swiss import Swiss
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import LEAGUE_FORMATS

SCHEDULES = {
    "round-robin": RoundRobin,
    "swiss": Swiss,
    "knockout": Knockout,
    "gauntlet": Gauntlet,
    "ab-test": ABTest,
}


@pytest.mark.parametrize("name", LEAGUE_FORMATS)
def test_every_format_has_a_schedule_of_its_own(name: str) -> None:
    league = league_of("random", "greedy", format=name, challengers=("random1",))
    assert type(schedule_of(league)) is SCHEDULES[name]


def test_an_unknown_format_is_refused_by_its_name() -> None:
    league = replace(league_of("random", "greedy"), format="round_robin")
    with pytest.raises(BadSchedule, match=r"format: 'round_robin' is none of round-robin, swiss, "):
        schedule_of(league)
