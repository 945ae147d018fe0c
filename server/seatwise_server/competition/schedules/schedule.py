"""The terms of every schedule: matches with stable ids, computed from the results so far whenever they are needed.

A schedule keeps no state. It consists of settings and entrants, and the due matches follow from them and from the
results so far. So a runner that was killed asks again, gets the same ids, and plays no match twice.

- A void match is played again under the next attempt's id, with the same deal and seats.
- After three void attempts (`SoFar.attempts`) a match is given up and counts for no bot.
- A forfeited match counts as it ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Protocol

from seatwise_server.competition.logged_result import LoggedResult

MOST_ATTEMPTS: Final = 3
"""The number of void attempts after which a match is given up."""
TABLE_SIZES: Final = (2, 3, 4)
"""The numbers of seats that a table may have."""


class BadSchedule(ValueError):
    """Settings from which no schedule can be made. The message begins with the setting's name."""


class Duplicate(StrEnum):
    """Whether a deal is played more than once."""

    NONE = "none"
    TRAVELLING = "travelling"
    """A deal goes to several tables, and no bot meets it twice."""
    ROTATION = "rotation"
    """The same bots play a deal from every seat. This suits only bots that are restarted for each match."""


@dataclass(frozen=True, slots=True)
class SharedDeal:
    """A duplicate deal, and a match's place among those that share it."""

    set: str
    """The name of the deal within the schedule: a to z, 0 to 9 and "-"."""
    number: int
    """The number of the match within the set, from 1."""
    size: int
    """How many matches share the deal."""


@dataclass(frozen=True, slots=True)
class ScheduledMatch:
    """A match that may be played now."""

    id: str
    """Unique within the schedule, and the same whenever the schedule is computed."""
    round: int
    """From 1."""
    bots: tuple[str, ...]
    """The bots by seat."""
    deal: SharedDeal | None = None


@dataclass(frozen=True, slots=True)
class ScheduledTable:
    """Bots that meet: for one match, or for several if seats rotate over a deal."""

    id: str
    round: int
    bots: tuple[str, ...]
    """The bots by seat."""


@dataclass(frozen=True, slots=True)
class RoundDraw:
    """The draw of one round, as it is stored with the season. Entrants are their places in the list of entrants, from 0."""

    round: int
    tables: tuple[tuple[int, ...], ...]
    """By seat, the table of the best entrant first."""
    byes: tuple[int, ...] = ()
    ahead: tuple[tuple[int, ...], ...] = ()
    """Tables of the next round that this draw was chosen to allow. Empty if it was not needed to look ahead."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values, from which `from_json` makes the same draw again."""
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any], entrants: int) -> RoundDraw:
        """Make a draw from plain values. Raises `ValueError` if they are none of so many entrants."""
        number, byes = plain.get("round"), plain.get("byes")
        tables, ahead = plain.get("tables"), plain.get("ahead")
        if type(number) is not int or not all(isinstance(each, list) for each in (byes, tables, ahead)):
            raise ValueError("this is no draw of a round")
        rows = [byes, *(tables or ()), *(ahead or ())]
        if not all(isinstance(row, list) for row in rows):
            raise ValueError("a table is no list of entrants")
        if not all(type(entrant) is int and 0 <= entrant < entrants for row in rows for entrant in row):
            raise ValueError(f"an entrant is no whole number from 0 to {entrants - 1}")
        return cls(number, tuple(map(tuple, tables or ())), tuple(byes or ()), tuple(map(tuple, ahead or ())))


@dataclass(frozen=True, slots=True)
class SoFar:
    """All that has been played, by the ids of `ScheduledMatch`."""

    results: Mapping[str, LoggedResult] = field(default_factory=dict)
    voids: Collection[str] = ()
    """The ids of matches that ended void."""
    attempts: int = MOST_ATTEMPTS
    """The number of void attempts after which a match is given up."""
    draws: Mapping[int, RoundDraw] = field(default_factory=dict)
    """By round, the draws that are stored with the season, if the format stores them."""


class Schedule(Protocol):
    """The format of a season, with its settings."""

    def due_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """Return the matches that may be played now and have no result, those under way included.

        If none is due, the season is over.
        """

    def expected_matches(self, so_far: SoFar) -> int:
        """Return how many matches the season has, as far as is known now."""

    def list_byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:
        """Return the byes so far as (round, bot): the bots that sat out a round that was meant for all."""


def unsettled_matches(matches: Sequence[ScheduledMatch], so_far: SoFar) -> tuple[ScheduledMatch, ...]:
    """Return those of the matches that have no result and are not given up, each as its next attempt."""
    attempts = (next_attempt(match, so_far) for match in matches)
    return tuple(match for match in attempts if match is not None)


def next_attempt(match: ScheduledMatch, so_far: SoFar) -> ScheduledMatch | None:
    """Return the match with the id under which it is to be played now. `None` if it has a result or is given up."""
    for attempt in attempt_ids(match.id, so_far.attempts):
        if attempt in so_far.results:
            return None
        if attempt not in so_far.voids:
            return replace(match, id=attempt)
    return None


def find_result(match: str, so_far: SoFar) -> LoggedResult | None:
    """Return the result of the attempt that counts, of the match with this first id. `None` if there is none yet."""
    return next(
        (so_far.results[each] for each in attempt_ids(match, so_far.attempts) if each in so_far.results), None
    )


def find_results(matches: Sequence[ScheduledMatch], so_far: SoFar) -> tuple[LoggedResult, ...]:
    """Return the results of those matches that have one."""
    return tuple(filter(None, (find_result(match.id, so_far) for match in matches)))


def matches_given_up(matches: Sequence[ScheduledMatch], so_far: SoFar) -> tuple[str, ...]:
    """Return the ids of the matches whose every attempt was void."""
    voids = so_far.voids
    return tuple(
        match.id
        for match in matches
        if match.id in voids and all(each in voids for each in attempt_ids(match.id, so_far.attempts))
    )


def attempt_ids(match: str, attempts: int = MOST_ATTEMPTS) -> tuple[str, ...]:
    """Return the ids under which a match of the schedule is played until it counts: `id`, `id.2`, `id.3`."""
    return (match, *(f"{match}.{attempt}" for attempt in range(2, attempts + 1)))


def check_entrants(entrants: Sequence[str], table_size: int, *, least: int | None = None) -> None:
    """Check the number of entrants, at least `least` or a full table, that none is named twice, and the size of tables.

    Raises `BadSchedule`.
    """
    if table_size not in TABLE_SIZES:
        raise BadSchedule(f"table_size: must be one of {', '.join(map(str, TABLE_SIZES))}, not {table_size}")
    twice = sorted(each for each, times in Counter(entrants).items() if times > 1)
    if twice:
        raise BadSchedule(f"entrants: {twice[0]} is among them twice")
    needed = table_size if least is None else least
    if len(entrants) < needed:
        raise BadSchedule(f"entrants: at least {needed} are needed, not {len(entrants)}")
