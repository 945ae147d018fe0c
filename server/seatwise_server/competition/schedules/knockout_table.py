"""One table of a knockout: what it plays, and who goes on from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatwise_server.competition.schedules.duplicate_deals import matches_at
from seatwise_server.competition.schedules.schedule import (
    Duplicate,
    ScheduledMatch,
    SoFar,
    Table,
    due_of,
    results_of,
)
from seatwise_server.competition.standings.scoring import Tally, tallies

LEVEL = Tally(points=0.0, score=0.5)
"""What all have at a table at which nothing was played."""


@dataclass(frozen=True, slots=True)
class KnockoutTable:
    """Bots of whom some go on."""

    id: str
    round: int
    bots: tuple[str, ...]
    """By seed."""
    seats: tuple[str, ...]
    """As they sit for the first deal; they move on by one seat with each."""
    goes_on: int
    """How many."""
    deals: int

    @property
    def is_bye(self) -> bool:
        """All go on: nothing is played."""
        return len(self.bots) <= self.goes_on

    def tables(self) -> tuple[Table, ...]:
        """One for each deal."""
        return tuple(self._table(f"g{deal + 1}", deal) for deal in range(0 if self.is_bye else self.deals))

    def _table(self, name: str, deal: int) -> Table:
        by = deal % len(self.seats)
        return Table(f"{self.id}-{name}", self.round, self.seats[by:] + self.seats[:by])

    def decider(self, duplicate: Duplicate) -> tuple[ScheduledMatch, ...]:
        """One deal more; it travels nowhere."""
        is_rotation = duplicate is Duplicate.ROTATION
        return matches_at(
            [self._table("last", self.deals)], Duplicate.ROTATION if is_rotation else Duplicate.NONE
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """A table with what it was to play and what came of it."""

    table: KnockoutTable
    matches: tuple[ScheduledMatch, ...]
    decider: tuple[ScheduledMatch, ...]
    so_far: SoFar

    def due(self) -> tuple[ScheduledMatch, ...]:
        """The decider only when all else is played and needs one."""
        return due_of(self.matches, self.so_far) or (
            due_of(self.decider, self.so_far) if self.is_level() else ()
        )

    def length(self) -> int:
        """How many matches it takes, as far as is known."""
        needs_decider = not due_of(self.matches, self.so_far) and self.is_level()
        return len(self.matches) + len(self.decider) * needs_decider

    def is_level(self) -> bool:
        """Whether two are level of whom one goes on. Where nothing could be played seeds decide at once."""
        played = self._tallies(self.matches)
        if not played or self.table.is_bye:
            return False
        last, first_out = self._ranked(played)[self.table.goes_on - 1 : self.table.goes_on + 1]
        return played[last] == played[first_out]

    def ranking(self) -> list[str]:
        """The best first; level ones in the order of seeds."""
        played = self._tallies(self.matches)
        last = self._tallies(self.decider)
        return sorted(self._ranked(played), key=lambda bot: self._place(bot, played, last))

    def _place(
        self, bot: str, played: dict[str, Tally], last: dict[str, Tally]
    ) -> tuple[tuple[float, float], ...]:
        """The decider decides between those who were level, and nothing else."""
        return (_worth(played.get(bot, LEVEL)), _worth(last.get(bot, LEVEL)))

    def _ranked(self, played: dict[str, Tally]) -> list[str]:
        return sorted(self.table.bots, key=lambda bot: _worth(played.get(bot, LEVEL)))

    def _tallies(self, matches: Sequence[ScheduledMatch]) -> dict[str, Tally]:
        return tallies(results_of(matches, self.so_far))


def _worth(tally: Tally) -> tuple[float, float]:
    """Less is better, so that a sort leaves level ones in the order of seeds."""
    return (-tally.points, -tally.score)
