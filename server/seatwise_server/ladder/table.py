"""The table of a ladder, as everybody is shown it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from seatwise_server.competition.ratings import Rating
from seatwise_server.competition.results import Result


@dataclass(frozen=True, slots=True)
class Line:
    """Where one bot stands."""

    bot: str
    mu: float
    sigma: float
    matches: int
    strength: float = 0.0
    low: float = 0.0
    high: float = 0.0
    provisional: bool = True
    peers: tuple[str, ...] = ()
    """Those near it in the table from whom its results do not tell it apart."""
    off: str = ""
    """Why it is off the ladder."""


def table_of(
    _results: Sequence[Result], rated: Sequence[tuple[str, Rating]], off: Mapping[str, str]
) -> Callable[[], bytes]:
    """Works out the table; it takes a while, so it is done beside everything else."""

    def work() -> bytes:
        return written([_line(bot, rating, off) for bot, rating in rated])

    return work


def _line(bot: str, rating: Rating, off: Mapping[str, str]) -> Line:
    return Line(bot, rating.mu, rating.sigma, rating.matches, off=off.get(bot, ""))


def written(lines: Sequence[Line]) -> bytes:
    """For the store. Numbers are written to the last digit."""
    return json.dumps([asdict(line) for line in lines], separators=(",", ":")).encode()


def read(table: bytes) -> list[Line]:
    """The inverse of `written`."""
    return [Line(**{**line, "peers": tuple(line["peers"])}) for line in json.loads(table)]
