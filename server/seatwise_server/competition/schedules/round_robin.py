"""Round robin over tables of two, three or four: everybody meets everybody equally often, as far as arithmetic allows.

A round seats everybody who finds a full table; where entrants remain they sit out in turn, which costs and brings nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random

from seatwise_server.competition.designs.affine_plane_design import PRIMITIVE, plane_rounds
from seatwise_server.competition.designs.anneal_rounds import evened
from seatwise_server.competition.designs.cyclic_design import Round, modulus_of, rounds_of
from seatwise_server.competition.schedules.balance_report import Spread, balance_of
from seatwise_server.competition.schedules.duplicate_deals import matches_at
from seatwise_server.competition.schedules.fixed_schedule import Planned
from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    ScheduledMatch,
    Table,
    check_entrants,
)
from seatwise_server.competition.schedules.seat_balance import balanced


@dataclass(frozen=True, slots=True)
class RoundRobin(Planned):
    """Its settings; what follows from them is worked out once."""

    entrants: tuple[str, ...]
    table_size: int = 2
    rounds: int = 0
    """0 is one cycle: the fewest rounds in which all pairs meet equally often, or nearly."""
    duplicate: Duplicate = Duplicate.TRAVELLING
    seed: str = ""
    """Of the draw: who stands where in the plan."""

    def __post_init__(self) -> None:
        check_entrants(self.entrants, self.table_size)
        if self.rounds < 0:
            raise BadSchedule(f"rounds: must be 0 or more, not {self.rounds}")

    def matches(self) -> tuple[ScheduledMatch, ...]:
        """All of the season."""
        return _matches(self)

    def balance(self) -> tuple[Spread, ...]:
        """How even the schedule is."""
        return balance_of(self.entrants, [match.bots for match in self.matches()])


@lru_cache(maxsize=64)
def _matches(plan: RoundRobin) -> tuple[ScheduledMatch, ...]:
    return matches_at(_tables(plan), plan.duplicate)


def _tables(plan: RoundRobin) -> list[Table]:
    chance = Random(f"round-robin/{plan.seed}")
    drawn = chance.sample(plan.entrants, len(plan.entrants))
    rounds = _rounds(len(drawn), plan.table_size, plan.rounds)
    named = [tuple(drawn[each] for each in table) for tables in rounds for table in tables]
    seated = iter(balanced(named, chance))
    return [
        Table(f"r{number}-t{place}", number, next(seated))
        for number, tables in enumerate(rounds, 1)
        for place in range(1, len(tables) + 1)
    ]


def _rounds(entrants: int, size: int, wanted: int) -> tuple[Round, ...]:
    """Whole cycles first, which mostly are even as they are; then what is left over, beside them."""
    length = modulus_of(entrants, size)
    wanted = wanted or length
    rounds = _cycles(entrants, size, -(-wanted // length))
    whole = wanted - wanted % length
    cycles = evened((), rounds[:whole], entrants)
    return cycles + evened(cycles, rounds[whole:wanted], entrants)


def _cycles(entrants: int, size: int, count: int) -> tuple[Round, ...]:
    if size == 4 and entrants in PRIMITIVE:
        return plane_rounds(entrants) * count
    return rounds_of(entrants, size, count)
