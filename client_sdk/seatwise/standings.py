"""The results of a series of matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from seatwise_referee.ending import Ending

Z_95 = 1.96
"""The half-width of a 95 % interval, in standard errors. It holds for series that are not too short."""


@dataclass(frozen=True, slots=True)
class PlayedMatch:
    """One match of a series. All tuples are by seat."""

    match: str
    """The name of the match. Format: matches/{match}."""

    bots: tuple[str, ...]
    """The bots, by their names in the standings."""

    points: tuple[int, ...]
    """The points of the whole match. Empty if the match was voided, like ranks, endings and rounds."""

    ranks: tuple[int, ...]
    endings: tuple[Ending, ...]
    rounds: tuple[tuple[int, ...], ...]
    void_reason: str
    """The reason for which the match does not count; empty if it counts."""

    moves: tuple[int, ...]
    """Number of questions that each seat was asked."""

    failures: tuple[int, ...]
    """Number of questions that each seat failed to answer: it raised, or its answer was no legal move."""

    thought_ms: tuple[float, ...]
    """Time that each seat thought in the whole match, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One bot's result in a series."""

    bot: str
    """Its name in the table."""

    matches: int
    """Number of its matches that count."""

    mean_points: float
    """Mean points per match; 0 if no match counts."""

    interval: tuple[float, float]
    """The 95 % interval of the mean points; infinite with fewer than two matches."""

    mean_rank: float
    """Mean rank, from 1; 0 if no match counts."""

    moves: int
    """Number of questions that it was asked."""

    failures: int
    """Number of questions that it failed to answer."""

    ms_per_move: float
    """Mean thinking time per question, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Results:
    """A series of matches. Iterate over it for the matches, and print it for the table.

    Example:
        >>> from seatwise import play
        >>> results = play(["random", "greedy"], matches=4, seed=1, options={"rounds": 1})
        >>> [match.void_reason for match in results]
        ['', '', '', '']
        >>> results.standing("greedy").matches
        4
    """

    game: str
    """The game, as in "ugo"."""

    bots: tuple[str, ...]
    """The names of the bots, in the order given to `play`."""

    matches: tuple[PlayedMatch, ...]
    """The matches in the order played."""

    def __len__(self) -> int:
        return len(self.matches)

    def __iter__(self) -> Iterator[PlayedMatch]:
        return iter(self.matches)

    @property
    def standings(self) -> tuple[Standing, ...]:
        """The result of each bot, in the order of `bots`."""
        return tuple(_standing(bot, self.matches) for bot in self.bots)

    def standing(self, bot: str) -> Standing:
        """Return the standing of one bot, by its name as in `bots`. Raises `ValueError` if there is none of this name."""
        return self.standings[self.bots.index(bot)]

    def __str__(self) -> str:
        first, *others = [max(map(len, column)) for column in zip(*self.rows(), strict=True)]
        return "\n".join(
            "  ".join([row[0].ljust(first), *map(str.rjust, row[1:], others)]) for row in self.rows()
        )

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table as text: the heading, then one row for each bot, the best first."""
        ordered = sorted(self.standings, key=lambda each: -each.mean_points)
        return [HEADING, *map(_row, ordered)]

    def to_json(self) -> dict[str, Any]:
        """Return the game, the number of matches and of voided matches, and the standing of each bot, as a value for JSON."""
        return {
            "game": self.game,
            "matches": len(self.matches),
            "voided": sum(bool(each.void_reason) for each in self.matches),
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
    told = asdict(standing)
    if standing.matches < 2:
        told["interval"] = None
    return told if standing.matches else told | {"mean_points": None, "mean_rank": None}


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
    """Return the 95 % interval of the mean of these points."""
    if len(points) < 2:
        return float("-inf"), float("inf")
    mean, reach = fmean(points), Z_95 * stdev(points) / len(points) ** 0.5
    return mean - reach, mean + reach
