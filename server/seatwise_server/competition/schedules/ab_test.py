"""A against B, until a sequential test accepts a hypothesis or the last match is played.

The test compares units. A unit is the set of matches that swap the two bots, on the same deal if there are duplicates. Its
difference is A's mean points minus B's. At tables of three and four the two bots share the seats as evenly as possible, and
a unit has each bot at each seat equally often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    Schedule,
    ScheduledMatch,
    SharedDeal,
    SoFar,
    check_entrants,
    find_results,
    follow_attempts,
    unsettled_matches,
)
from seatwise_server.competition.standings.scoring import table_scores
from seatwise_server.competition.statistics.anytime_test import AnytimeTest, TrialVerdict


@dataclass(frozen=True, slots=True)
class ABTest(Schedule):
    """The settings of an A-B test. Units are weighed in the order of their numbers, in whatever order they end."""

    a: str
    b: str
    table_size: int = 2
    test: AnytimeTest = field(default_factory=AnytimeTest)
    most_units: int = 1000
    units_at_once: int = 8
    """The number of units that may be played at the same time."""
    duplicate: Duplicate = Duplicate.ROTATION

    def __post_init__(self) -> None:
        check_entrants((self.a, self.b), self.table_size, least=2)
        for name, value in (("most_units", self.most_units), ("units_at_once", self.units_at_once)):
            if value < 1:
                raise BadSchedule(f"{name}: must be 1 or more, not {value}")

    def due_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """Return the open matches of the first `units_at_once` open units. None after the verdict."""
        if self.current_verdict(so_far) is not TrialVerdict.OPEN:
            return ()
        due: list[ScheduledMatch] = []
        open_units = 0
        for unit in self._all_units():
            matches = unsettled_matches(unit, so_far)
            due.extend(matches)
            open_units += bool(matches)
            if open_units == self.units_at_once:
                break
        return tuple(due)

    def known_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:  # noqa: ARG002 - it is a `Schedule`
        return tuple(match for unit in self._all_units() for match in unit)

    def expected_matches(self, so_far: SoFar) -> int:
        """Return the most matches that there can be. The number that an early verdict saves cannot be known before."""
        return self.most_units * len(self._build_unit(1)) if self.due_matches(so_far) else len(so_far.results)

    def unit_differences(self, so_far: SoFar) -> tuple[float, ...]:
        """Return A's points minus B's by unit, up to the first open unit. A unit with a match that was given up is left out.

        A unit of which one bot lost a match by walk-over counts against that bot, by the largest difference of an earlier unit.
        """
        found: list[float] = []
        for unit in takewhile(lambda unit: not unsettled_matches(unit, so_far), self._all_units()):
            results = find_results(unit, so_far)
            absent = {bot for match in unit for bot in follow_attempts(match.id, so_far).absent}
            if len(results) == len(unit):
                means = table_scores(results)
                found.append(means[self.a].points - means[self.b].points)
            elif len(absent) == 1:
                most = max(map(abs, found), default=0.0)
                found.append(-most if self.a in absent else most)
        return tuple(found)

    def current_verdict(self, so_far: SoFar) -> TrialVerdict:
        """Return the first verdict that the differences give. Units behind it change nothing."""
        return self.test.first_verdict(self.unit_differences(so_far))

    def _all_units(self) -> Iterator[tuple[ScheduledMatch, ...]]:
        return (self._build_unit(number) for number in range(1, self.most_units + 1))

    def _build_unit(self, number: int) -> tuple[ScheduledMatch, ...]:
        name, orders = f"u{number}", _unit_seatings(self.a, self.b, self.table_size)
        # with two bots there is no other table that a deal could travel to
        is_duplicate = self.duplicate is Duplicate.ROTATION
        return tuple(
            ScheduledMatch(
                f"{name}-s{at}", number, bots, SharedDeal(name, at, len(orders)) if is_duplicate else None
            )
            for at, bots in enumerate(orders, 1)
        )


def _unit_seatings(a: str, b: str, size: int) -> tuple[tuple[str, ...], ...]:
    """Return all seatings of a unit. At three seats each bot in turn has two of them, at each place."""
    if size == 3:
        circles = [(a, a, b), (b, b, a)]
        return tuple(circle[by:] + circle[:by] for circle in circles for by in range(3))
    circle = (a, b) * (size // 2)
    return (circle, circle[1:] + circle[:1])
