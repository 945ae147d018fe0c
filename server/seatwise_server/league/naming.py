"""Names the matches of a schedule on the server: each name follows from the league and from the match's id."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.knockout import Knockout
from seatwise_server.competition.schedules.schedule import Schedule, SoFar, attempt_ids
from seatwise_server.competition.schedules.swiss import Swiss
from seatwise_server.resource_names import match_name_for


def request_id_of(league: str, match: str) -> str:
    """Return the id of the request that creates a match of the schedule. It is always the same, so the match is created once."""
    return hashlib.sha256(f"{league}/{match}".encode()).hexdigest()[:40]


def id_without_deal(match: str) -> str:
    """Return the id under which a match is created with a deal of its own, because the shared deal is known already."""
    return f"{match}-new"


def deal_name(league: str, deal: str) -> str:
    """Return the name of the deal's set. No deal of another league has this name."""
    return f"sets/{league.removeprefix('leagues/')}-{deal}"


def so_far_of(
    league: str,
    schedule: Schedule,
    results: Iterable[LoggedResult],
    voids: Mapping[str, Sequence[str] | None],
) -> SoFar:
    """Return the results and void matches by the ids of the schedule, from the server's log and its void matches by name.

    A void match has the bots against which their absence is held, or `None` if it was void for another reason. A match keeps its name
    if it is not in the schedule, or if the format does not need its id.
    """
    by_match = {result.match: result for result in results}
    ids: dict[str, str] = {}
    absences = {match: tuple(absent) for match, absent in voids.items() if absent is not None}

    def so_far() -> SoFar:
        played = {ids.get(match, match): result for match, result in by_match.items()}
        named = {ids.get(match, match): absent for match, absent in absences.items()}
        return SoFar(played, {ids.get(match, match) for match in voids}, named)

    over = by_match.keys() | set(voids)
    first: Iterable[str] = ()
    if isinstance(schedule, Swiss):  # its ids are known beforehand, and a draw may take long
        first = (match for _, match in schedule.first_attempts())
    elif absences and not isinstance(
        schedule, Knockout
    ):  # a bot that misses two attempts of one match loses it
        first = (match.id for match in schedule.known_matches(SoFar()))
    ids |= _find_over(over, league, (each for match in first for each in attempt_ids(match)))
    while isinstance(schedule, Knockout) and (
        ended := _find_over(over - ids.keys(), league, (match.id for match in schedule.due_matches(so_far())))
    ):
        ids |= ended
    return so_far()


def _find_over(over: Collection[str], league: str, matches: Iterable[str]) -> dict[str, str]:
    """Return those of the matches with these ids that are over, as the id of each by its name."""
    named = {
        match_name_for(request_id_of(league, called)): match
        for match in matches
        for called in (match, id_without_deal(match))
    }
    return {name: match for name, match in named.items() if name in over}
