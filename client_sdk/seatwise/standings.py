"""What came out of a series of matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from seatwise_referee.ending import Ending

Z_95 = 1.96
"""So many standard errors to either side hold the true mean in 95 % of all series, if they are not too short."""


@dataclass(frozen=True, slots=True)
class PlayedMatch:
    """One match of a series; the tuples are by seat."""

    match: str
    """Format: matches/{match}."""

    bots: tuple[str, ...]
    """Who sat where, by the names of the standings."""

    points: tuple[int, ...]
    """Empty if the match was voided, as the ranks, endings and rounds."""

    ranks: tuple[int, ...]
    endings: tuple[Ending, ...]
    rounds: tuple[tuple[int, ...], ...]
    void_reason: str
    """Why it counts for nobody; empty if it counts."""

    moves: tuple[int, ...]
    """How many questions each seat was asked."""

    failures: tuple[int, ...]
    """How many of them it failed to answer, by an exception or with no legal move."""

    thought_ms: tuple[float, ...]
    """How long it thought, in all."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One bot's part of a series."""

    bot: str
    matches: int
    """Those that count."""

    mean_points: float
    interval: tuple[float, float]
    """Holds the true mean with 95 %; endless while there are fewer than two matches."""

    mean_rank: float
    moves: int
    failures: int
    ms_per_move: float


@dataclass(frozen=True, slots=True)
class Results:
    """A series of matches: iterate for the matches, print for the table."""

    game: str
    bots: tuple[str, ...]
    matches: tuple[PlayedMatch, ...]

    def __len__(self) -> int:
        return len(self.matches)

    def __iter__(self) -> Iterator[PlayedMatch]:
        return iter(self.matches)

    @property
    def standings(self) -> tuple[Standing, ...]:
        """By bot, in the order given."""
        return tuple(_standing(bot, self.matches) for bot in self.bots)

    def standing(self, bot: str) -> Standing:
        """That of one bot, by its name in `bots`."""
        return self.standings[self.bots.index(bot)]

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.rows(), strict=True)]
        return "\n".join(
            "  ".join(
                [
                    row[0].ljust(widths[0]),
                    *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
                ]
            )
            for row in self.rows()
        )

    def rows(self) -> list[tuple[str, ...]]:
        """The table as text, the heading first, then the bots, the best first."""
        ordered = sorted(self.standings, key=lambda each: -each.mean_points)
        return [HEADING, *map(_row, ordered)]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        voided = sum(1 for each in self.matches if each.void_reason)
        return {
            "game": self.game,
            "matches": len(self.matches),
            "voided": voided,
            "standings": [_to_json(each) for each in self.standings],
        }


HEADING = ("bot", "matches", "mean points", "95 % interval", "mean rank", "failures", "ms/move")


def _row(standing: Standing) -> tuple[str, ...]:
    low, high = standing.interval
    return (
        standing.bot,
        str(standing.matches),
        f"{standing.mean_points:.2f}" if standing.matches else "-",
        f"{low:.2f} to {high:.2f}" if standing.matches > 1 else "-",
        f"{standing.mean_rank:.2f}" if standing.matches else "-",
        str(standing.failures),
        f"{standing.ms_per_move:.3f}",
    )


def _to_json(standing: Standing) -> dict[str, Any]:
    counts = standing.matches > 0
    return {
        "bot": standing.bot,
        "matches": standing.matches,
        "mean_points": standing.mean_points if counts else None,
        "interval": list(standing.interval) if standing.matches > 1 else None,
        "mean_rank": standing.mean_rank if counts else None,
        "moves": standing.moves,
        "failures": standing.failures,
        "ms_per_move": standing.ms_per_move,
    }


def _standing(bot: str, matches: Sequence[PlayedMatch]) -> Standing:
    places = [(each, each.bots.index(bot)) for each in matches]
    counted = [(each, seat) for each, seat in places if not each.void_reason]
    points = [each.points[seat] for each, seat in counted]
    moves = sum(each.moves[seat] for each, seat in places)
    thought_ms = sum(each.thought_ms[seat] for each, seat in places)
    return Standing(
        bot=bot,
        matches=len(counted),
        mean_points=fmean(points) if points else 0.0,
        interval=interval_of(points),
        mean_rank=fmean(each.ranks[seat] for each, seat in counted) if counted else 0.0,
        moves=moves,
        failures=sum(each.failures[seat] for each, seat in places),
        ms_per_move=thought_ms / moves if moves else 0.0,
    )


def interval_of(points: Sequence[int]) -> tuple[float, float]:
    """The 95 % interval of their mean."""
    if len(points) < 2:
        return float("-inf"), float("inf")
    mean, reach = fmean(points), Z_95 * stdev(points) / len(points) ** 0.5
    return mean - reach, mean + reach
