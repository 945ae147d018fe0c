"""Round robin over tables of two, three or four: every pair meets equally often, as far as that is possible.

A round seats as many entrants as fill whole tables. If some remain, entrants sit out in turn, which does not
change their score.
"""

from __future__ import annotations

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
from seatwise_server.competition.schedules.balance_report import Spread, measure_balance
from seatwise_server.competition.schedules.duplicate_deals import matches_at_tables
from seatwise_server.competition.schedules.equitable_seats import seat_evenly
from seatwise_server.competition.schedules.fixed_schedule import FixedSchedule
from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    ScheduledMatch,
    ScheduledTable,
    check_entrants,
)
from seatwise_server.competition.schedules.seat_balance import BotsBySeat


@dataclass(frozen=True, slots=True)
class RoundRobin(FixedSchedule):
    """The settings of a round robin. The plan is computed once."""

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
        """Return all matches of the season."""
        return _plan_matches(self)

    def measure_balance(self) -> tuple[Spread, ...]:
        """Return how even the schedule is."""
        return measure_balance(self.entrants, [match.bots for match in self.all_matches()])


@lru_cache(maxsize=64)
def _plan_matches(plan: RoundRobin) -> tuple[ScheduledMatch, ...]:
    return matches_at_tables(_draw_tables(plan), plan.duplicate)


def _draw_tables(plan: RoundRobin) -> list[ScheduledTable]:
    chance = Random(f"round-robin/{plan.seed}")
    drawn = chance.sample(plan.entrants, len(plan.entrants))
    rounds = _plan_rounds(len(drawn), plan.table_size, plan.rounds)
    named = [tuple(drawn[each] for each in table) for tables in rounds for table in tables]
    seated = iter(_seat_tables(plan, named, chance))
    return [
        ScheduledTable(f"r{number}-t{place}", number, next(seated))
        for number, tables in enumerate(rounds, 1)
        for place in range(1, len(tables) + 1)
    ]


def _seat_tables(plan: RoundRobin, tables: list[BotsBySeat], chance: Random) -> list[BotsBySeat]:
    # in a rotation every bot has every seat of its table anyway
    return seat_evenly(tables, chance, only_relations=plan.duplicate is Duplicate.ROTATION)


def _plan_rounds(entrants: int, size: int, wanted: int) -> tuple[DesignRound, ...]:
    """Plan whole cycles first, most of which are even by design, and then even out the rounds that remain."""
    length = cycle_length(entrants, size)
    wanted = wanted or length
    rounds = _plan_cycles(entrants, size, -(-wanted // length))
    whole = wanted - wanted % length
    cycles = even_out_rounds((), rounds[:whole], entrants)
    return cycles + even_out_rounds(cycles, rounds[whole:wanted], entrants)


def _plan_cycles(entrants: int, size: int, count: int) -> tuple[DesignRound, ...]:
    if size == 4 and entrants in PRIMITIVE_POLYNOMIALS:
        return affine_plane_rounds(entrants) * count
    return cyclic_rounds(entrants, size, count)
