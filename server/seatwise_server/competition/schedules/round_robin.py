"""Schedules whose matches are all known from the beginning: round robin and gauntlet, at tables of two, three or four.

In a round robin every pair meets equally often, as far as that is possible. A round seats as many entrants as fill whole tables. If
some remain, entrants sit out in turn, which does not change their score.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from seatwise_server.competition.designs.cyclic_design import (
    PRIMITIVE_POLYNOMIALS,
    DesignRound,
    affine_plane_rounds,
    cycle_length,
    cyclic_rounds,
)
from seatwise_server.competition.designs.lightest_tables import even_out_rounds
from seatwise_server.competition.designs.seat_balance import Spread, measure_balance
from seatwise_server.competition.schedules.equitable_seats import seat_evenly
from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    Schedule,
    ScheduledMatch,
    SoFar,
    check_entrants,
    follow_attempts,
    matches_at_tables,
    unsettled_matches,
)


class FixedSchedule(Schedule):
    """A schedule whose plan no result changes. Each match may be played at any time."""

    __slots__ = ()

    @abstractmethod
    def all_matches(self) -> tuple[ScheduledMatch, ...]:
        """Return all matches of the season."""

    @abstractmethod
    def measure_balance(self) -> tuple[Spread, ...]:
        """Return how even the plan is."""

    def due_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        return unsettled_matches(self.all_matches(), so_far)

    def known_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:  # noqa: ARG002 - it is a `Schedule`
        return self.all_matches()

    def expected_matches(self, so_far: SoFar) -> int:
        """Return the number of matches that have a result or may get one."""
        if not so_far.voids:
            return len(self.all_matches())
        found = (follow_attempts(match.id, so_far) for match in self.all_matches())
        return sum(bool(each.result or each.attempt) for each in found)


@dataclass(frozen=True, slots=True)
class RoundRobin(FixedSchedule):
    """The settings of a round robin. Sitting out is part of the plan, and no bye: all entrants do it equally often."""

    entrants: tuple[str, ...]
    table_size: int = 2
    rounds: int = 0
    """0 is one cycle: the fewest rounds in which all pairs meet equally often, or nearly so."""
    duplicate: Duplicate = Duplicate.TRAVELLING
    seed: str = ""
    """Seeds the draw of the entrants' numbers in the plan."""

    def __post_init__(self) -> None:
        check_entrants(self.entrants, self.table_size)
        if self.rounds < 0:
            raise BadSchedule(f"rounds: must be 0 or more, not {self.rounds}")

    def all_matches(self) -> tuple[ScheduledMatch, ...]:
        return _plan_round_robin(self)

    def measure_balance(self) -> tuple[Spread, ...]:
        return measure_balance(self.entrants, [match.bots for match in self.all_matches()])


@lru_cache(maxsize=64)
def _plan_round_robin(plan: RoundRobin) -> tuple[ScheduledMatch, ...]:
    chance = Random(f"round-robin/{plan.seed}")
    drawn = chance.sample(plan.entrants, len(plan.entrants))
    rounds = _plan_rounds(len(drawn), plan.table_size, plan.rounds)
    named = [tuple(drawn[each] for each in table) for tables in rounds for table in tables]
    seated = iter(seat_evenly(named, chance, only_relations=plan.duplicate is Duplicate.ROTATION))
    tables = [
        ScheduledMatch(f"r{number}-t{place}", number, next(seated))
        for number, tables in enumerate(rounds, 1)
        for place in range(1, len(tables) + 1)
    ]
    return matches_at_tables(tables, plan.duplicate)


def _plan_rounds(entrants: int, size: int, wanted: int) -> tuple[DesignRound, ...]:
    """Plan whole cycles first, most of which are even by design, and then even out the rounds that remain."""
    length = cycle_length(entrants, size)
    wanted = wanted or length
    count, whole = -(-wanted // length), wanted - wanted % length
    if size == 4 and entrants in PRIMITIVE_POLYNOMIALS:
        rounds = affine_plane_rounds(entrants) * count
    else:
        rounds = cyclic_rounds(entrants, size, count)
    cycles = even_out_rounds((), rounds[:whole], entrants)
    return cycles + even_out_rounds(cycles, rounds[whole:wanted], entrants)


# Gauntlet: every challenger meets each bot of the field equally often. Bots of the field meet only at tables with a challenger.


@dataclass(frozen=True, slots=True)
class Gauntlet(FixedSchedule):
    """The settings of a gauntlet."""

    challengers: tuple[str, ...]
    field: tuple[str, ...]
    table_size: int = 2
    rounds: int = 0
    """Matches of each challenger, or deals if seats rotate. 0 is one at each seat against each bot of the field."""
    duplicate: Duplicate = Duplicate.TRAVELLING
    seed: str = ""

    def __post_init__(self) -> None:
        check_entrants((*self.challengers, *self.field), self.table_size)
        if not self.challengers:
            raise BadSchedule("challengers: at least one is needed")
        if len(self.field) < self.table_size - 1:
            raise BadSchedule(f"field: at least {self.table_size - 1} are needed, not {len(self.field)}")
        if self.rounds < 0:
            raise BadSchedule(f"rounds: must be 0 or more, not {self.rounds}")

    def all_matches(self) -> tuple[ScheduledMatch, ...]:
        return _plan_gauntlet(self)

    def measure_balance(self) -> tuple[Spread, ...]:
        """Return how even the schedule is for the field, at the tables of the first challenger."""
        first = self.challengers[0]
        tables = [match.bots for match in self.all_matches() if first in match.bots]
        return measure_balance(self.field, [tuple(bot for bot in bots if bot != first) for bots in tables])


@lru_cache(maxsize=64)
def _plan_gauntlet(plan: Gauntlet) -> tuple[ScheduledMatch, ...]:
    turns = 1 if plan.duplicate is Duplicate.ROTATION else plan.table_size
    rounds = plan.rounds or turns * len(plan.field)
    tables = [
        ScheduledMatch(f"r{number + 1}-t{at + 1}", number + 1, _bots_at_table(plan, challenger, at, number))
        for number in range(rounds)
        for at, challenger in enumerate(plan.challengers)
    ]
    return matches_at_tables(tables, plan.duplicate)


def _bots_at_table(plan: Gauntlet, challenger: str, at: int, number: int) -> tuple[str, ...]:
    """Return the bots of one table by seat. Each pass through the field has its own order, and moves the challenger by one seat.

    Challengers of one round start far apart in that order. So their tables have no bot in common, if the field is large enough.
    """
    size = len(plan.field)
    lap, step = divmod(number, size)
    order = Random(f"gauntlet/{plan.seed}/{lap}").sample(plan.field, size)
    others = [order[(step + at * (plan.table_size - 1) + by) % size] for by in range(plan.table_size - 1)]
    seat = (lap + step) % plan.table_size
    circle = (challenger, *others)
    return circle[-seat:] + circle[:-seat] if seat else circle
