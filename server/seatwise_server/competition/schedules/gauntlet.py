"""Gauntlet: every challenger meets each bot of the field equally often. Bots of the field meet only at tables with a challenger.

One challenger sits at each table. At tables of three or four the others are bots of the field, in changing company. A round
has as many tables as there are challengers. One pass through the field takes as many rounds as the field has bots.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random

from seatwise_server.competition.schedules.balance_report import Spread, measure_balance
from seatwise_server.competition.schedules.duplicate_deals import matches_at_tables
from seatwise_server.competition.schedules.fixed_schedule import FixedSchedule
from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    ScheduledMatch,
    ScheduledTable,
    check_entrants,
)


@dataclass(frozen=True, slots=True)
class Gauntlet(FixedSchedule):
    """The settings of a gauntlet. The plan is computed once."""

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
        """Return all matches of the season."""
        return _plan_matches(self)

    def measure_balance(self) -> tuple[Spread, ...]:
        """Return how even the schedule is for the field, at the tables of the first challenger."""
        first = self.challengers[0]
        tables = [match.bots for match in self.all_matches() if first in match.bots]
        return measure_balance(self.field, [tuple(bot for bot in bots if bot != first) for bots in tables])


@lru_cache(maxsize=64)
def _plan_matches(plan: Gauntlet) -> tuple[ScheduledMatch, ...]:
    turns = 1 if plan.duplicate is Duplicate.ROTATION else plan.table_size
    rounds = plan.rounds or turns * len(plan.field)
    tables = [
        ScheduledTable(f"r{number + 1}-t{at + 1}", number + 1, _bots_at_table(plan, challenger, at, number))
        for number in range(rounds)
        for at, challenger in enumerate(plan.challengers)
    ]
    return matches_at_tables(tables, plan.duplicate)


def _bots_at_table(plan: Gauntlet, challenger: str, at: int, number: int) -> tuple[str, ...]:
    """Return the bots of one table by seat.

    Each pass through the field has an order of its own and moves the challenger by one seat.

    Challengers of one round start far apart in that order. So their tables have no bot in common, if the field is large
    enough.
    """
    size = len(plan.field)
    lap, step = divmod(number, size)
    order = Random(f"gauntlet/{plan.seed}/{lap}").sample(plan.field, size)
    others = [order[(step + at * (plan.table_size - 1) + by) % size] for by in range(plan.table_size - 1)]
    seat = (lap + step) % plan.table_size
    circle = (challenger, *others)
    return circle[-seat:] + circle[:-seat] if seat else circle
