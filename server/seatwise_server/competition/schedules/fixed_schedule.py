"""A schedule whose matches are all known from the beginning. Each may be played at any time."""

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
    """A `Schedule` whose plan no result changes."""

    __slots__ = ()

    @abstractmethod
    def all_matches(self) -> tuple[ScheduledMatch, ...]:
        """Return all matches of the season."""

    @abstractmethod
    def measure_balance(self) -> tuple[Spread, ...]:
        """Return how even the plan is."""

    def due_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """Return the matches that may be played now. See `Schedule`."""
        return unsettled_matches(self.all_matches(), so_far)

    def expected_matches(self, so_far: SoFar) -> int:
        """Return the number of matches that are not given up. See `Schedule`."""
        return len(self.all_matches()) - len(matches_given_up(self.all_matches(), so_far))

    def list_byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:  # noqa: ARG002 - it is a `Schedule`
        """Return no byes: sitting out is part of the plan, and all entrants do it equally often."""
        return ()
