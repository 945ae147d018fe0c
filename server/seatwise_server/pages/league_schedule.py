"""The schedule of a league for its page: which matches come next, as far as the published results decide it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import MOST_ATTEMPTS, BadSchedule, attempt_ids
from seatwise_server.league.naming import id_without_deal, request_id_of, so_far_of
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import League
from seatwise_server.league.table import describe_verdict, standings_of
from seatwise_server.match_names import match_name_for

MOST_DRAWN = 64
"""Entrants of a league. The draw of a larger one takes too long for a page."""
MOST_LOOKED_AT = 5000
"""Due matches that are looked at."""


@dataclass(frozen=True, slots=True)
class DueMatch:
    """A match of the schedule that has no published result."""

    round: int
    bots: tuple[str, ...]
    names: tuple[str, ...]
    """The names that its attempts may have on the server: with its shared deal, or with a deal of its own."""


@dataclass(frozen=True, slots=True)
class LeagueSchedule:
    """The matches that are still to be played."""

    expected: int
    """How many matches the season has, as far as is known now."""
    due: tuple[DueMatch, ...]
    byes: tuple[tuple[int, str], ...]
    """Rounds and the bots that sit out."""
    verdict: str = ""
    """The verdict of the test, if the league is a test of A against B."""


def plan_league(
    name: str, settings: League, results: Sequence[LoggedResult], voids: Mapping[str, Sequence[str] | None]
) -> LeagueSchedule | None:
    """Returns the schedule of a league after these results and void matches; None if a page cannot draw it."""
    if len(settings.entrants) > MOST_DRAWN:
        return None
    try:
        schedule = schedule_of(settings)
        so_far = so_far_of(name, schedule, results, voids)
        due = [
            DueMatch(each.round, each.bots, _names_of(name, each.id, voids))
            for each in schedule.due_matches(so_far)[:MOST_LOOKED_AT]
        ]
        counted = {result.match for result in results}
        left = tuple(each for each in due if not _is_settled(each, counted, voids))
        verdict = describe_verdict(settings, standings_of(settings, so_far)) if results else ""
        return LeagueSchedule(schedule.expected_matches(so_far), left, schedule.list_byes(so_far), verdict)
    except BadSchedule:
        return None


def _names_of(league: str, match: str, voids: Collection[str]) -> tuple[str, ...]:
    """Returns the names of the match's attempts, up to the first that is not void."""
    found: list[str] = []
    for attempt in attempt_ids(match):
        names = [match_name_for(request_id_of(league, each)) for each in (attempt, id_without_deal(attempt))]
        found += names
        if not voids or not set(names) & set(voids):
            break
    return tuple(found)


def _is_settled(match: DueMatch, counted: Collection[str], voids: Collection[str]) -> bool:
    """Whether an attempt of the match counts, or every attempt was void. Not every format looks at that itself."""
    return any(name in counted for name in match.names) or (
        sum(name in voids for name in match.names) >= MOST_ATTEMPTS
    )
