"""A league's settings as the arithmetic of competition/ wants them."""

from __future__ import annotations

from seatwise_server.competition.round_robin import RoundRobin
from seatwise_server.competition.schedule import Duplicate, Schedule
from seatwise_server.league.settings import League

TIE_BREAKS = ("points", "mean_rank")
USUAL_TIE_BREAKS = ("points",)


def schedule_of(league: League) -> Schedule:
    """What is to be played, and when. Raises `BadSchedule`."""
    return RoundRobin(league.players, league.seats, league.rounds, Duplicate(league.deals), league.seed)


def is_repeat(match: str) -> bool:
    """Whether that id is of a match that was void before."""
    return "." in match
