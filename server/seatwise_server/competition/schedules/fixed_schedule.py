"""A schedule of which all matches are known from the beginning: each may be played at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod

from seatwise_server.competition.schedules.balance_report import Spread
from seatwise_server.competition.schedules.schedule import (
    ScheduledMatch,
    SoFar,
    matches_given_up,
    unsettled_matches,
)


class FixedSchedule(ABC):
    """A `Schedule` whose plan nothing changes that is played."""

    __slots__ = ()

    @abstractmethod
    def all_matches(self) -> tuple[ScheduledMatch, ...]:
        """All of the season."""

    @abstractmethod
    def measure_balance(self) -> tuple[Spread, ...]:
        """How even the plan is."""

    def due_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """See `Schedule`."""
        return unsettled_matches(self.all_matches(), so_far)

    def expected_matches(self, so_far: SoFar) -> int:
        """See `Schedule`."""
        return len(self.all_matches()) - len(matches_given_up(self.all_matches(), so_far))

    def list_byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:  # noqa: ARG002 - it is a `Schedule`
        """Nobody has one: to sit out is part of the plan and the same for all."""
        return ()
