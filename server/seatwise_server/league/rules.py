"""Turns the settings of a league into the schedule and the criteria of competition/."""

from __future__ import annotations

from dataclasses import replace

from seatwise_server.competition.schedules.ab_test import ABTest
from seatwise_server.competition.schedules.knockout import Knockout
from seatwise_server.competition.schedules.round_robin import Gauntlet, RoundRobin
from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    Schedule,
    ScheduledMatch,
    SoFar,
)
from seatwise_server.competition.schedules.swiss import Swiss
from seatwise_server.competition.standings.tie_breaks import BY_POINTS, BY_SCORE
from seatwise_server.league.settings import LEAGUE_FORMATS, League

FILE_SETTING_NAMES = {"table_size": "seats", "deals": "rounds", "most_units": "rounds", "field": "entrants"}
"""The names that settings of competition/ have in a league file, where they differ."""
MOST_UNITS = 1000
LARGEST_TABLE = 4
"""The most seats of any game."""
MOST_ROUNDS = 100_000


def schedule_of(league: League) -> Schedule:
    """Make the schedule of a league. Raises `BadSchedule`."""
    players, duplicate = league.players, Duplicate(league.deals)
    match league.format:
        case "swiss":
            # As many rounds as it takes until only one entrant can have won all its matches.
            rounds = league.rounds or max(1, (len(players) - 1).bit_length())
            return Swiss(players, rounds, league.seats, duplicate, league.seed)
        case "knockout":
            deals = league.rounds or 1
            return Knockout(players, league.seats, league.advance, deals, duplicate, league.seed)
        case "gauntlet":
            sides = _split_sides(league)
            return Gauntlet(*sides, league.seats, league.rounds, duplicate, league.seed)
        case "ab-test":
            a, b = players
            most = league.rounds or MOST_UNITS
            return ABTest(a, b, league.seats, league.trial, most_units=most, duplicate=duplicate)
        case "round-robin":
            return RoundRobin(players, league.seats, league.rounds, duplicate, league.seed)
    raise BadSchedule(f"format: {league.format!r} is none of {', '.join(LEAGUE_FORMATS)}")


def criteria_of(league: League) -> tuple[str, ...]:
    """Return the tie-breaks of the league's table in order; none for a knockout, which its bracket orders."""
    if league.format == "knockout":
        return ()
    return league.tie_breaks or (BY_SCORE if league.format == "swiss" else BY_POINTS)


def started_by(schedule: Schedule, results: int) -> tuple[ScheduledMatch, ...]:
    """Return the matches that may have been under way when a season with this number of results was decided."""
    if not isinstance(schedule, ABTest):
        return ()
    return replace(schedule, units_at_once=max(1, min(schedule.most_units, results))).due_matches(SoFar())


def is_repeat(match: str) -> bool:
    """Return whether the id is that of a repeated match: its first attempt was void."""
    return "." in match


def _split_sides(league: League) -> tuple[tuple[str, ...], tuple[str, ...]]:
    challengers = [each.player for each in league.entrants if each.name in league.challengers]
    return tuple(challengers), tuple(player for player in league.players if player not in challengers)
