"""A schedule of which all matches are known from the beginning: each may be played at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod

from seatwise_server.competition.schedules.balance_report import Spread
from seatwise_server.competition.schedules.schedule import ScheduledMatch, SoFar, due_of, given_up


class Planned(ABC):
    """A `Schedule` whose plan nothing changes that is played."""

    __slots__ = ()

    @abstractmethod
    def matches(self) -> tuple[ScheduledMatch, ...]:
        """All of the season."""

    @abstractmethod
    def balance(self) -> tuple[Spread, ...]:
        """How even the plan is."""

    def due(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """See `Schedule`."""
        return due_of(self.matches(), so_far)

    def length(self, so_far: SoFar) -> int:
        """See `Schedule`."""
        return len(self.matches()) - len(given_up(self.matches(), so_far))

    def byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:  # noqa: ARG002 - it is a `Schedule`
        """Nobody has one: to sit out is part of the plan and the same for all."""
        return ()
