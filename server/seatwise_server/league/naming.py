"""What a match of a schedule is called on the server: the name follows from the league and from the match's id."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Final

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.knockout import Knockout
from seatwise_server.competition.schedules.schedule import Schedule, ScheduledMatch, SoFar
from seatwise_server.competition.schedules.swiss import Swiss
from seatwise_server.match_names import match_name_for

DRAWN: Final = (Knockout, Swiss)
"""Of these byes and places follow from what was played at which table; of all others from the results alone."""


def request_id_of(league: str, match: str) -> str:
    """Return the id of the request that creates a match of the league's schedule, so that it exists once."""
    return hashlib.sha256(f"{league}/{match}".encode()).hexdigest()[:40]


def id_without_deal(match: str) -> str:
    """Return the id under which the match is created if its deal is known by then."""
    return f"{match}-new"


def so_far_of(
    league: str, schedule: Schedule, results: Iterable[LoggedResult], voids: Collection[str]
) -> SoFar:
    """Return what was played by the ids of the schedule, from the server's log and the names of its void matches.

    What is none of the schedule's, or need not be looked for in it, keeps its name.
    """
    by_match = {result.match: result for result in results}
    ids: dict[str, str] = {}

    def so_far() -> SoFar:
        played = {ids.get(match, match): result for match, result in by_match.items()}
        return SoFar(played, {ids.get(match, match) for match in voids})

    over = by_match.keys() | set(voids)
    while isinstance(schedule, DRAWN) and (
        ended := _find_over(over - ids.keys(), league, schedule.due_matches(so_far()))
    ):
        ids |= ended
    return so_far()


def _find_over(over: Collection[str], league: str, due: Iterable[ScheduledMatch]) -> dict[str, str]:
    """Return the matches that were due and are over: the id of each by its name."""
    named = {
        match_name_for(request_id_of(league, called)): match.id
        for match in due
        for called in (match.id, id_without_deal(match.id))
    }
    return {name: match for name, match in named.items() if name in over}
