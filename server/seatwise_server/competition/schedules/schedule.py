"""The terms of every schedule: matches with stable ids, computed from the results so far whenever they are needed.

A schedule keeps no state. It consists of settings and entrants, and the due matches follow from them and from the results so far. So a
runner that was killed asks again, gets the same ids, and plays no match twice. docs/statistics.md says when a match is repeated, lost
by walk-over (`follow_attempts`) or given up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import Any, Final

from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import add_up

MOST_ATTEMPTS: Final = 3
"""The number of void attempts after which a match is given up, those apart in which the server had a fault."""
MOST_ATTEMPT_IDS: Final = 32
"""The number of void attempts after which a match is given up, whatever the reasons were."""
MISSES_OF_WALK_OVER: Final = 2
"""A bot that misses so many attempts of a match loses it by walk-over."""
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
        tables, ahead = (list(map(list, each)) for each in (self.tables, self.ahead))
        return {"round": self.round, "tables": tables, "byes": list(self.byes), "ahead": ahead}

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
    absences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By void attempt that failed because bots did not sit down, those bots; none if the server may have been at fault."""
    draws: Mapping[int, RoundDraw] = field(default_factory=dict)
    """By round, the draws that are stored with the season, if the format stores them."""
    left: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By match with a result, the bots that had left the league: they lose it by walk-over, and the result does not count."""


class Schedule(ABC):
    """The format of a season, with its settings."""

    __slots__ = ()

    @abstractmethod
    def due_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """Return the matches without a result that may be played now, those under way included. None after the season."""

    @abstractmethod
    def known_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """Return all matches that are known by now, each with the id of its first attempt."""

    @abstractmethod
    def expected_matches(self, so_far: SoFar) -> int:
        """Return how many matches the season has, as far as is known now."""

    def list_byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:  # noqa: ARG002 - some formats have none
        """Return the byes so far as (round, bot): the bots that sat out a round that was meant for all."""
        return ()


@dataclass(frozen=True, slots=True)
class MatchAttempts:
    """A match of the schedule after its attempts so far."""

    result: LoggedResult | None = None
    """The result that counts."""
    attempt: str | None = None
    """The id under which it is to be played now. `None` if it has a result, is lost by walk-over, or is given up."""
    absent: tuple[str, ...] = ()
    """The bots that lose it by walk-over."""


def follow_attempts(match: str, so_far: SoFar, *, goes_on: bool = False) -> MatchAttempts:
    """Follow the attempts of the match with this first id. With `goes_on` it is played on without bots that lose it by walk-over."""
    missed: Counter[str] = Counter()
    absent: list[str] = []
    counted = 0
    for attempt in attempt_ids(match):
        if attempt in so_far.results:
            left = so_far.left.get(attempt, ())
            return MatchAttempts(None if left else so_far.results[attempt], absent=(*absent, *left))
        if attempt not in so_far.voids:
            return MatchAttempts(attempt=attempt, absent=tuple(absent))
        missing = so_far.absences.get(attempt)
        if missing is not None and not missing:
            continue
        missed.update(missing or ())
        found = [bot for bot in missed if missed[bot] >= MISSES_OF_WALK_OVER and bot not in absent]
        absent += found
        counted = 0 if found else counted + 1
        if counted == MOST_ATTEMPTS or (found and not goes_on):
            break
    return MatchAttempts(absent=tuple(absent))


def list_walk_overs(so_far: SoFar) -> dict[str, tuple[str, ...]]:
    """Return the bots that lost by walk-over, by the id of the first attempt of the match."""
    missed = sorted({attempt.partition(".")[0] for attempt in (*so_far.absences, *so_far.left)})
    found = {match: follow_attempts(match, so_far).absent for match in missed}
    return {match: absent for match, absent in found.items() if absent}


def list_walk_over_meetings(schedule: Schedule, so_far: SoFar) -> list[LoggedResult]:
    """Return each walk-over as an ordinary win of the bots that did not lose it, as the tests of pairs take it.

    The winners have the mean points of a first rank in this season, the others those of a last rank.
    """
    lost = list_walk_overs(so_far)
    results = [result for result in so_far.results.values() if len(set(result.ranks)) > 1]
    if not lost or not results:
        return []
    first, last = (
        round(
            add_up(result.points[result.ranks.index(rank(result.ranks))] for result in results) / len(results)
        )
        for rank in (min, max)
    )
    found: list[LoggedResult] = []
    for match in schedule.known_matches(so_far):
        absent = () if match.id in so_far.left else lost.get(match.id, ())
        if absent and len(absent) < len(match.bots):
            points = tuple(last if bot in absent else first for bot in match.bots)
            winners = len(match.bots) - len(absent)
            ranks = tuple(1 + winners if bot in absent else 1 for bot in match.bots)
            endings = (Ending.COMPLETED,) * len(match.bots)  # those tests may leave out a seat that left
            seq = len(so_far.results) + len(found) + 1
            found.append(LoggedResult(seq, f"walk-over/{match.id}", match.bots, points, ranks, endings))
    return found


def unsettled_matches(matches: Sequence[ScheduledMatch], so_far: SoFar) -> tuple[ScheduledMatch, ...]:
    """Return those of the matches that are to be played, each as its next attempt."""
    attempts = ((match, follow_attempts(match.id, so_far).attempt) for match in matches)
    return tuple(replace(match, id=attempt) for match, attempt in attempts if attempt)


def find_results(
    matches: Sequence[ScheduledMatch], so_far: SoFar, *, goes_on: bool = False
) -> tuple[LoggedResult, ...]:
    """Return the results of those matches that have one. `goes_on` is that of `follow_attempts`."""
    found = (follow_attempts(match.id, so_far, goes_on=goes_on).result for match in matches)
    return tuple(result for result in found if result)


def attempt_ids(match: str) -> Iterator[str]:
    """Yield the ids under which a match of the schedule is played until it counts: `id`, `id.2`, `id.3`, ..."""
    yield match
    for attempt in range(2, MOST_ATTEMPT_IDS + 1):
        yield f"{match}.{attempt}"


def check_entrants(entrants: Sequence[str], table_size: int, *, least: int | None = None) -> None:
    """Check that no entrant is named twice, that there are `least` or a full table, and the size of tables. Raises `BadSchedule`."""
    if table_size not in TABLE_SIZES:
        raise BadSchedule(f"table_size: must be one of {', '.join(map(str, TABLE_SIZES))}, not {table_size}")
    twice = sorted(each for each, times in Counter(entrants).items() if times > 1)
    if twice:
        raise BadSchedule(f"entrants: {twice[0]} is among them twice")
    needed = table_size if least is None else least
    if len(entrants) < needed:
        raise BadSchedule(f"entrants: at least {needed} are needed, not {len(entrants)}")


# Decide which matches share a deal. A table is the match that its bots would play without duplicate deals.


def matches_at_tables(tables: Sequence[ScheduledMatch], duplicate: Duplicate) -> tuple[ScheduledMatch, ...]:
    """Return all matches of these tables, which come round by round."""
    if duplicate is Duplicate.ROTATION:
        return tuple(match for table in tables for match in _rotate_seats(table))
    if duplicate is Duplicate.TRAVELLING:
        rounds = groupby(tables, key=lambda table: table.round)
        return tuple(match for _, of_round in rounds for match in _share_travelling_deals(of_round))
    return tuple(tables)


def _rotate_seats(table: ScheduledMatch) -> Iterable[ScheduledMatch]:
    """Yield the matches in which the bots of a table play one deal, each from every seat. Neighbours stay neighbours."""
    size = len(table.bots)
    for turn in range(size):
        bots, deal = table.bots[turn:] + table.bots[:turn], SharedDeal(table.id, turn + 1, size)
        yield ScheduledMatch(f"{table.id}-s{turn + 1}", table.round, bots, deal)


@dataclass(slots=True)
class _TravellingDeal:
    """A deal with the tables that it goes to."""

    tables: list[ScheduledMatch]
    bots: set[str]
    """The bots of these tables. None of them may meet the deal twice."""

    def can_be_played_at(self, table: ScheduledMatch) -> bool:
        """Return whether the deal has a hand for every seat of the table, and no bot would meet it twice."""
        return len(self.tables[0].bots) == len(table.bots) and self.bots.isdisjoint(table.bots)


def _share_travelling_deals(tables: Iterable[ScheduledMatch]) -> Iterable[ScheduledMatch]:
    """Give each table the first deal that none of its bots has met. A deal that stays at one table is not shared."""
    deals: list[_TravellingDeal] = []
    for table in tables:
        chosen = next((each for each in deals if each.can_be_played_at(table)), None)
        if chosen is None:
            deals.append(chosen := _TravellingDeal([], set()))
        chosen.tables.append(table)
        chosen.bots.update(table.bots)
    for place, deal in enumerate(deals, 1):
        size = len(deal.tables)
        for number, table in enumerate(deal.tables, 1):
            shared = SharedDeal(f"r{table.round}-d{place}", number, size) if size > 1 else None
            yield ScheduledMatch(table.id, table.round, table.bots, shared)
