"""A schedule whose matches are all known from the beginning. Each may be played at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod

from seatwise_server.competition.schedules.balance_report import Spread
from seatwise_server.competition.schedules.schedule import (
    ScheduledMatch,
    SoFar,
    follow_attempts,
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

    def known_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:  # noqa: ARG002 - it is a `Schedule`
        """Return all matches. See `Schedule`."""
        return self.all_matches()

    def expected_matches(self, so_far: SoFar) -> int:
        """Return the number of matches that have a result or may get one. See `Schedule`."""
        if not so_far.voids:
            return len(self.all_matches())
        found = (follow_attempts(match.id, so_far) for match in self.all_matches())
        return sum(bool(each.result or each.attempt) for each in found)

    def list_byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:  # noqa: ARG002 - it is a `Schedule`
        """Return no byes: sitting out is part of the plan, and all entrants do it equally often."""
        return ()
