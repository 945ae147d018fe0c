"""A against B, until a sequential test says which hypothesis holds or the last match is played.

A unit is what is compared: the matches that swap the two, on the same deal if there are duplicates. Its difference is A's mean
points less B's. At tables of three and four the two share the seats, as even as can be, and the unit has each at each seat
equally often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Deal,
    Duplicate,
    ScheduledMatch,
    SoFar,
    check_entrants,
    due_of,
    results_of,
)
from seatwise_server.competition.standings.scoring import tallies
from seatwise_server.competition.statistics.sprt import PointsTest, Verdict


@dataclass(frozen=True, slots=True)
class ABTest:
    """Units are played side by side, and weighed in their order: what ends first has no say in the verdict."""

    a: str
    b: str
    table_size: int = 2
    test: PointsTest = field(default_factory=PointsTest)
    most_units: int = 1000
    ahead: int = 8
    """So many units may be played at once."""
    duplicate: Duplicate = Duplicate.ROTATION

    def __post_init__(self) -> None:
        check_entrants((self.a, self.b), self.table_size, least=2)
        for name, value in (("most_units", self.most_units), ("ahead", self.ahead)):
            if value < 1:
                raise BadSchedule(f"{name}: must be 1 or more, not {value}")

    def due(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        if self.verdict(so_far) is not Verdict.OPEN:
            return ()
        due: list[ScheduledMatch] = []
        open_units = 0
        for unit in self._units():
            matches = due_of(unit, so_far)
            due.extend(matches)
            open_units += bool(matches)
            if open_units == self.ahead:
                break
        return tuple(due)

    def length(self, so_far: SoFar) -> int:
        """At the most; what a test saves cannot be known before."""
        return self.most_units * len(self._unit(1)) if self.due(so_far) else len(so_far.results)

    def byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:  # noqa: ARG002 - it is a `Schedule`
        return ()

    def differences(self, so_far: SoFar) -> tuple[float, ...]:
        """A's points less B's, by unit, as far as all units before it are settled; a unit that was given up is left out."""
        found = []
        for unit in self._settled(so_far):
            results = results_of(unit, so_far)
            if len(results) == len(unit):
                means = tallies(results)
                found.append(means[self.a].points - means[self.b].points)
        return tuple(found)

    def verdict(self, so_far: SoFar) -> Verdict:
        """At the first unit after which there is one; what was played beyond it changes nothing."""
        return self.test.verdict(self.differences(so_far))

    def _units(self) -> Iterator[tuple[ScheduledMatch, ...]]:
        return (self._unit(number) for number in range(1, self.most_units + 1))

    def _settled(self, so_far: SoFar) -> Iterator[tuple[ScheduledMatch, ...]]:
        for unit in self._units():
            if due_of(unit, so_far):
                return
            yield unit

    def _unit(self, number: int) -> tuple[ScheduledMatch, ...]:
        orders = _orders(self.a, self.b, self.table_size)
        name = f"u{number}"
        is_duplicate = self.duplicate is Duplicate.ROTATION  # there is nobody else to travel to
        return tuple(
            ScheduledMatch(
                f"{name}-s{at}", number, bots, Deal(name, at, len(orders)) if is_duplicate else None
            )
            for at, bots in enumerate(orders, 1)
        )


def _orders(a: str, b: str, size: int) -> tuple[tuple[str, ...], ...]:
    """All matches of a unit. At three seats one of the two has one more: each in turn, at each place."""
    if size == 3:
        circles = [(a, a, b), (b, b, a)]
        return tuple(circle[by:] + circle[:by] for circle in circles for by in range(3))
    circle = (a, b) * (size // 2)
    return (circle, circle[1:] + circle[:1])
