"""A table of results: who stands where, by which declared rule, and what counts when somebody left.

- What a match brings: `scoring.counted_points` and `scoring.scores`. Who forfeits or resigns is behind all who stayed and keeps
  no more points than the least of them; the others keep theirs. Void matches never count.
- A bye scores like a win and brings no points: means of points are over matches alone.
- The criteria are asked in their order, each only of those whom all before it left level. Whom the last leaves level share
  their place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Final

from seatwise_server.competition.logged_result import FORFEIT_ENDINGS, LoggedResult
from seatwise_server.competition.standings.scoring import counted_points, scores

BYE_SCORE: Final = 1.0
NOTHING: Final = float("-inf")
"""Of whom has played nothing: it is behind all others."""


@dataclass(frozen=True, slots=True)
class Line:
    """One entrant."""

    place: int
    bot: str
    matches: int
    points: float
    """The mean of its matches."""
    score: float
    """The mean share of the others that it finished ahead of, byes included."""
    wins: float
    """Matches in which nobody finished ahead of it; a shared first place is shared among those who have it."""
    byes: int
    forfeits: int
    resigned: int
    criteria: tuple[tuple[str, float], ...] = ()
    """What each criterion said of it, as far as it was asked."""


@dataclass(frozen=True)
class Season:
    """What the criteria are asked about."""

    results: tuple[LoggedResult, ...]
    entrants: tuple[str, ...]
    byes: Mapping[str, int]
    seed: str

    @cached_property
    def points(self) -> dict[str, list[float]]:
        """By bot, of each match."""
        return _by_bot(self.results, counted_points)

    @cached_property
    def scores(self) -> dict[str, list[float]]:
        """By bot, of each match and each bye."""
        found = _by_bot(self.results, scores)
        for bot, count in self.byes.items():
            found.setdefault(bot, []).extend([BYE_SCORE] * count)
        return found

    @cached_property
    def wins(self) -> dict[str, list[float]]:
        """By bot, its share of the first place."""
        return _by_bot(self.results, lambda result: [(r == 1) / result.ranks.count(1) for r in result.ranks])

    @cached_property
    def endings(self) -> Counter[tuple[str, str]]:
        """In how many matches each bot has ended how, at whichever of its seats."""
        return Counter(
            pair for result in self.results for pair in set(zip(result.bots, result.endings, strict=True))
        )

    @cached_property
    def matches(self) -> Counter[str]:
        """By bot. One that has several seats at a table has played one match there."""
        return Counter(bot for result in self.results for bot in set(result.bots))

    def forfeits(self, bot: str) -> int:
        """Matches that it broke off without a word."""
        return sum(self.endings[bot, ending] for ending in FORFEIT_ENDINGS)


Criterion = Callable[[Season, str, Sequence[str]], float]
"""More is better. The last argument are those who are level, the bot included."""


def _points(season: Season, bot: str, _: Sequence[str]) -> float:
    return _mean(season.points.get(bot))


def _score(season: Season, bot: str, _: Sequence[str]) -> float:
    return _mean(season.scores.get(bot))


def _wins(season: Season, bot: str, _: Sequence[str]) -> float:
    return sum(season.wins.get(bot, ()))


def _head_to_head(season: Season, bot: str, level: Sequence[str]) -> float:
    """How often it finished ahead of the others who are level with it; who met none of them is neither nor."""
    shares = [share for other in level if other != bot for share in _against(season.results, bot, other)]
    return _mean(shares) if shares else 0.5


def _buchholz(season: Season, bot: str, _: Sequence[str]) -> float:
    """The mean score of those whom it met."""
    met = [other for result in season.results if bot in result.bots for other in result.bots if other != bot]
    return _mean([_mean(season.scores[other]) for other in met])


def _forfeits(season: Season, bot: str, _: Sequence[str]) -> float:
    return -season.forfeits(bot)


def _seed(season: Season, bot: str, _: Sequence[str]) -> float:
    """The better seed."""
    return -season.entrants.index(bot)


def _lot(season: Season, bot: str, _: Sequence[str]) -> float:
    """Drawn from the season's seed and the name, so that anybody can draw it again."""
    return int.from_bytes(sha256(f"{season.seed}/lot/{bot}".encode()).digest()[:6], "big")


CRITERIA: Final[Mapping[str, Criterion]] = {
    "points": _points,
    "score": _score,
    "head_to_head": _head_to_head,
    "wins": _wins,
    "buchholz": _buchholz,
    "forfeits": _forfeits,
    "seed": _seed,
    "lot": _lot,
}
"""By the names under which settings declare them."""

BY_POINTS: Final = ("points", "head_to_head", "score", "wins")
BY_SCORE: Final = ("score", "buchholz", "head_to_head", "points")
"""For Swiss tournaments."""


def standings(
    results: Iterable[LoggedResult],
    entrants: Sequence[str],
    criteria: Sequence[str] = BY_POINTS,
    byes: Iterable[tuple[int, str]] = (),
    seed: str = "",
) -> tuple[Line, ...]:
    """The table, the best first. `KeyError` for a criterion that does not exist."""
    season = Season(tuple(results), tuple(entrants), Counter(bot for _, bot in byes), seed)
    asked: dict[str, list[tuple[str, float]]] = {bot: [] for bot in entrants}
    groups = [list(entrants)]
    for name in criteria:
        groups = [part for group in groups for part in _split(group, name, season, asked)]
    lines: list[Line] = []
    for group in groups:
        place = len(lines) + 1
        lines.extend(_line(season, bot, place, asked[bot]) for bot in sorted(group))
    return tuple(lines)


def in_order(
    results: Iterable[LoggedResult],
    order: Sequence[Sequence[str]],
    byes: Iterable[tuple[int, str]] = (),
) -> tuple[Line, ...]:
    """The table of a season whose format says itself who came where, as a knockout does: those of a group share a place."""
    entrants = [bot for group in order for bot in group]
    season = Season(tuple(results), tuple(entrants), Counter(bot for _, bot in byes), "")
    lines: list[Line] = []
    for group in order:
        place = len(lines) + 1
        lines.extend(_line(season, bot, place, []) for bot in group)
    return tuple(lines)


def _split(
    group: Sequence[str], name: str, season: Season, asked: Mapping[str, list[tuple[str, float]]]
) -> list[list[str]]:
    """Those who are level, apart by this criterion. Whoever is alone is not asked."""
    if len(group) == 1:
        return [list(group)]
    values = {bot: CRITERIA[name](season, bot, group) for bot in group}
    for bot, value in values.items():
        asked[bot].append((name, value))
    levels = sorted({round(value, 9) for value in values.values()}, reverse=True)
    return [[bot for bot in group if round(values[bot], 9) == level] for level in levels]


def _line(season: Season, bot: str, place: int, asked: Sequence[tuple[str, float]]) -> Line:
    points = season.points.get(bot, [])
    return Line(
        place=place,
        bot=bot,
        matches=season.matches[bot],
        points=_mean(points) if points else 0.0,
        score=_mean(season.scores[bot]) if bot in season.scores else 0.0,
        wins=sum(season.wins.get(bot, ())),
        byes=season.byes.get(bot, 0),
        forfeits=season.forfeits(bot),
        resigned=season.endings[bot, "RESIGNED"],
        criteria=tuple(asked),
    )


def _by_bot(
    results: Iterable[LoggedResult], values_of: Callable[[LoggedResult], Sequence[float]]
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for result in results:
        for bot, value in zip(result.bots, values_of(result), strict=True):
            found.setdefault(bot, []).append(value)
    return found


def _against(results: Iterable[LoggedResult], bot: str, other: str) -> list[float]:
    """1 for each match in which it finished ahead of the other, half where they share a place; of each pair of their seats."""
    return [
        (own < its) + (own == its) / 2
        for result in results
        for own in _ranks(result, bot)
        for its in _ranks(result, other)
    ]


def _ranks(result: LoggedResult, bot: str) -> list[int]:
    return [rank for each, rank in zip(result.bots, result.ranks, strict=True) if each == bot]


def _mean(values: Sequence[float] | None) -> float:
    return sum(values) / len(values) if values else NOTHING
