"""What a schedule is: matches with stable ids, worked out anew from the results so far, whoever asks and however often.

A schedule keeps nothing. It is settings and entrants; what is due follows from them and from what has been played, so that
whoever was killed asks again, is told the same ids, and plays no match twice.

- A void match is played again, under the next attempt's id, with the same deal and seats.
- After three void matches (`SoFar.attempts`) it is given up: it counts for nobody.
- A forfeited match counts as it ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Protocol

from seatwise_server.competition.logged_result import LoggedResult

MOST_ATTEMPTS: Final = 3
TABLE_SIZES: Final = (2, 3, 4)
"""Of tables."""


class BadSchedule(ValueError):
    """Settings from which no schedule can be made. The message begins with the setting's name."""


class Duplicate(StrEnum):
    """Whether a deal is played more than once."""

    NONE = "none"
    TRAVELLING = "travelling"
    """A deal goes to several tables, and no bot meets it twice."""
    ROTATION = "rotation"
    """The same bots play a deal from every seat: only for bots that are started afresh for each match."""


@dataclass(frozen=True, slots=True)
class SharedDeal:
    """A match's place among those that share a deal."""

    set: str
    """Names the deal within the schedule: a to z, 0 to 9 and "-"."""
    number: int
    """Which of the set's matches it is, from 1."""
    size: int


@dataclass(frozen=True, slots=True)
class ScheduledMatch:
    """A match that may be played now."""

    id: str
    """Unique within the schedule and always the same."""
    round: int
    """From 1."""
    bots: tuple[str, ...]
    """By seat."""
    deal: SharedDeal | None = None


@dataclass(frozen=True, slots=True)
class ScheduledTable:
    """Bots that meet: for one match, or for several where seats rotate over a deal."""

    id: str
    round: int
    bots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SoFar:
    """All that has been played, by the ids of `ScheduledMatch`."""

    results: Mapping[str, LoggedResult] = field(default_factory=dict)
    voids: Collection[str] = ()
    """Those that ended void."""
    attempts: int = MOST_ATTEMPTS
    """How often a match may be void before it is given up."""


class Schedule(Protocol):
    """A season's format."""

    def due_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """What may be played now and has no result, what is being played included. Nothing is due: the season is over."""

    def expected_matches(self, so_far: SoFar) -> int:
        """How many matches the season has, as far as can be said now."""

    def list_byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:
        """Who sat out a round that was for all, as (round, bot)."""


def unsettled_matches(matches: Sequence[ScheduledMatch], so_far: SoFar) -> tuple[ScheduledMatch, ...]:
    """Those of them that are not settled, each as its next attempt."""
    attempts = (next_attempt(match, so_far) for match in matches)
    return tuple(match for match in attempts if match is not None)


def next_attempt(match: ScheduledMatch, so_far: SoFar) -> ScheduledMatch | None:
    """The match as it is to be played now; `None` where it has a result or is given up."""
    for attempt in attempt_ids(match.id, so_far.attempts):
        if attempt in so_far.results:
            return None
        if attempt not in so_far.voids:
            return replace(match, id=attempt)
    return None


def find_result(match: str, so_far: SoFar) -> LoggedResult | None:
    """That of whichever attempt was not void."""
    return next(
        (so_far.results[each] for each in attempt_ids(match, so_far.attempts) if each in so_far.results), None
    )


def find_results(matches: Sequence[ScheduledMatch], so_far: SoFar) -> tuple[LoggedResult, ...]:
    """Of those that have one."""
    return tuple(filter(None, (find_result(match.id, so_far) for match in matches)))


def matches_given_up(matches: Sequence[ScheduledMatch], so_far: SoFar) -> tuple[str, ...]:
    """Those that were void as often as they may be."""
    return tuple(
        match.id
        for match in matches
        if all(each in so_far.voids for each in attempt_ids(match.id, so_far.attempts))
    )


def attempt_ids(match: str, attempts: int = MOST_ATTEMPTS) -> tuple[str, ...]:
    """Return the ids under which a match of the schedule is played until it counts: `id`, `id.2`, `id.3`."""
    return (match, *(f"{match}.{attempt}" for attempt in range(2, attempts + 1)))


def check_entrants(entrants: Sequence[str], table_size: int, *, least: int | None = None) -> None:
    """Raises `BadSchedule`."""
    if table_size not in TABLE_SIZES:
        raise BadSchedule(f"table_size: must be one of {', '.join(map(str, TABLE_SIZES))}, not {table_size}")
    twice = sorted({each for each in entrants if entrants.count(each) > 1})
    if twice:
        raise BadSchedule(f"entrants: {twice[0]} is among them twice")
    needed = table_size if least is None else least
    if len(entrants) < needed:
        raise BadSchedule(f"entrants: at least {needed} are needed, not {len(entrants)}")
