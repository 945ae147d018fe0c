"""The results of a bot: of one match, and of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from seatwise_referee.ending import Ending
from seatwise_referee.game import Seat
from seatwise_referee.journal import Finished, Voided


@dataclass(frozen=True, slots=True)
class Result:
    """The end of one match, seen from one seat. All tuples are by seat."""

    match: str
    """The name of the match. Format: matches/{match}."""

    seat: Seat
    """The bot's own seat, from 0."""

    points: tuple[int, ...] = ()
    """The points of the whole match. Empty if the match was voided, like the tuples below."""

    ranks: tuple[int, ...] = ()
    """The ranks that count. 1 is the best, and equal seats share a rank.

    A seat that resigned or was forfeited ranks behind those that stayed.
    """

    outcome_ranks: tuple[int, ...] = ()
    """The ranks by points alone."""

    endings: tuple[Ending, ...] = ()
    """How each seat came to the end."""

    rounds: tuple[tuple[int, ...], ...] = ()
    """The points of each round: a tuple of rounds, each a tuple by seat."""

    void_reason: str = ""
    """The reason for which the match does not count; empty if it counts."""

    seed: bytes = b""
    """The seed of the match. Its SHA-256 is the commitment of the offer. Empty while a set of duplicate deals runs."""

    chain: bytes = b""
    """The last link of the record's hash chain, 32 bytes."""

    @property
    def is_void(self) -> bool:
        """Whether the match was voided, so that it does not count."""
        return bool(self.void_reason)


def result_of(end: Finished | Voided, match: str, seat: Seat, seed: bytes = b"") -> Result:
    """Make the result from the journal's last entry."""
    if isinstance(end, Voided):
        return Result(match, seat, void_reason=end.reason, seed=seed)
    outcome = cast("dict[str, Any]", end.outcome)
    return Result(
        match=match,
        seat=seat,
        points=tuple(outcome["points"]),
        ranks=tuple(cast("list[int]", end.result["ranks"])),
        outcome_ranks=tuple(outcome["ranks"]),
        endings=end.endings,
        rounds=tuple(map(tuple, outcome["rounds"])),
        seed=seed,
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """All matches of one run, seen from the bot."""

    matches: int
    """Number of matches that count."""

    mean_points: float
    """Mean points per match; 0 if no match counts."""

    mean_rank: float
    """Mean rank, from 1; 0 if no match counts."""

    ranks: Mapping[int, int]
    """Number of matches by the bot's rank, from 1."""

    endings: Mapping[str, int]
    """Number of matches by how the bot's seat ended. COMPLETED is the normal ending."""

    moves: int
    """Number of the bot's own moves in all matches, without the moves that the referee played for it."""

    failures: int
    """Number of exceptions, and of answers that were no legal moves."""

    voided: int
    """Number of matches that were voided, so that they do not count."""

    unknown: int
    """Number of matches that are over but have an unknown result."""

    left: int
    """Number of matches that were still open when the run stopped."""

    def __str__(self) -> str:
        others = {"voided": self.voided, "without a result": self.unknown, "left": self.left}
        means = f"{self.mean_points:.2f} points, rank {self.mean_rank:.2f} on average"
        counted = f"{self.matches} match{'es' * (self.matches > 1)}: {means}"
        parts = [
            counted if self.matches else "no match that counts",
            f"{self.failures} failures in {self.moves} moves",
            *(f"{count} {what}" for what, count in others.items() if count),
        ]
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name, as a value for JSON. The means are `None` if no match counts."""
        ranks = {str(rank): count for rank, count in sorted(self.ranks.items())}
        told = asdict(self) | {"ranks": ranks, "endings": dict(sorted(self.endings.items()))}
        return told if self.matches else told | {"mean_points": None, "mean_rank": None}


@dataclass(slots=True)
class RunTotals:
    """The sums of a run so far. It keeps no matches, because a bot may play for months."""

    points: int = 0
    ranks: Counter[int] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    moves: int = 0
    failures: int = 0
    voided: int = 0
    unknown: int = 0

    @property
    def matches(self) -> int:
        """Number of matches that count."""
        return self.ranks.total()

    def add_match(self, result: Result | None) -> None:
        """Add a match that is over; `None` if its result is unknown."""
        if result is None:
            self.unknown += 1
        elif result.is_void:
            self.voided += 1
        else:
            self.points += result.points[result.seat]
            self.ranks[result.ranks[result.seat]] += 1
            self.endings[str(result.endings[result.seat])] += 1

    def make_summary(self, left: int = 0) -> Summary:
        """Return the summary so far."""
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
