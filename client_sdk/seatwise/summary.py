"""What came of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seatwise.result import Result


@dataclass(frozen=True, slots=True)
class Summary:
    """All matches of one run, seen from the bot."""

    matches: int
    """Those that count."""

    mean_points: float
    """0 if there are none, as the mean rank."""

    mean_rank: float
    ranks: Mapping[int, int]
    """How often it came first, second, ..."""

    endings: Mapping[str, int]
    """How its seats came to the end: COMPLETED is as it should be."""

    moves: int
    """Its own moves, of all matches; not those that the referee played for it."""

    failures: int
    """Exceptions, and answers that were no legal moves."""

    voided: int
    """Matches that count for nobody."""

    unknown: int
    """Matches that were over without their end being told."""

    left: int
    """Matches that were still open when the run was cut short."""

    def __str__(self) -> str:
        others = {"voided": self.voided, "without a result": self.unknown, "left": self.left}
        means = f"{self.mean_points:.2f} points, rank {self.mean_rank:.2f} on average"
        parts = [
            f"{self.matches} match{'es' * (self.matches > 1)}: {means}"
            if self.matches
            else "no match that counts",
            f"{self.failures} failures in {self.moves} moves",
            *(f"{count} {what}" for what, count in others.items() if count),
        ]
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "matches": self.matches,
            "mean_points": self.mean_points if self.matches else None,
            "mean_rank": self.mean_rank if self.matches else None,
            "ranks": {str(rank): count for rank, count in sorted(self.ranks.items())},
            "endings": dict(sorted(self.endings.items())),
            "moves": self.moves,
            "failures": self.failures,
            "voided": self.voided,
            "unknown": self.unknown,
            "left": self.left,
        }


@dataclass(slots=True)
class Tally:
    """A summary in the making; it keeps sums, not matches, for a bot may play for months."""

    points: int = 0
    ranks: Counter[int] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    moves: int = 0
    failures: int = 0
    voided: int = 0
    unknown: int = 0

    @property
    def matches(self) -> int:
        """Those that count."""
        return self.ranks.total()

    def add(self, result: Result | None) -> None:
        """One match is over; `None` if nobody told how."""
        if result is None:
            self.unknown += 1
        elif result.is_void:
            self.voided += 1
        else:
            self.points += result.points[result.seat]
            self.ranks[result.ranks[result.seat]] += 1
            self.endings[str(result.endings[result.seat])] += 1

    def summary(self, left: int = 0) -> Summary:
        """As it stands."""
        matches = self.matches
        ranks = sum(rank * count for rank, count in self.ranks.items())
        return Summary(
            matches=matches,
            mean_points=self.points / matches if matches else 0.0,
            mean_rank=ranks / matches if matches else 0.0,
            ranks=dict(self.ranks),
            endings=dict(self.endings),
            moves=self.moves,
            failures=self.failures,
            voided=self.voided,
            unknown=self.unknown,
            left=left,
        )
