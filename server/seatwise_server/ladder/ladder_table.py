"""The published table of a ladder, and the points of its history: what the table said of each bot at one time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter

from seatwise_server.competition.ratings.openskill_ratings import Rating
from seatwise_server.ladder.ladder_worker import StrengthsByBot


@dataclass(frozen=True, slots=True)
class LadderRow:
    """One bot. The rating decides the pairing. The strength orders the table."""

    bot: str
    mu: float
    sigma: float
    matches: int
    strength: float
    """The strength in Elo points; its interval is `low` to `high`."""
    low: float
    high: float
    provisional: bool
    peers: tuple[str, ...]
    """The neighbours in the table that the results do not distinguish from the bot."""
    off: str
    """Why the bot is off the ladder; empty if it is on it."""


def build_table(
    rated: Sequence[tuple[str, Rating]], strengths: StrengthsByBot, off: Mapping[str, str]
) -> list[LadderRow]:
    """Return the rows in the order of the strengths.

    Bots without an estimated strength come last, in the order of their ratings, with a provisional 0.
    """
    unknown = [0.0, 0.0, 0.0, True, []]
    places = {bot: place for place, bot in enumerate(strengths)}
    lines = []
    for bot, rating in sorted(rated, key=lambda each: places.get(each[0], len(places))):
        strength, low, high, provisional, peers = strengths.get(bot, unknown)
        known = (strength, low, high, provisional, tuple(peers))
        lines.append(LadderRow(bot, rating.mu, rating.sigma, rating.matches, *known, off.get(bot, "")))
    return lines


def encode_table(lines: Sequence[LadderRow]) -> bytes:
    """Return the table as JSON for the store. Numbers keep all digits."""
    return json.dumps([asdict(line) for line in lines], separators=(",", ":")).encode()


def decode_table(table: bytes) -> list[LadderRow]:
    """Return the table that `encode_table` has written."""
    return [LadderRow(**{**line, "peers": tuple(line["peers"])}) for line in json.loads(table)]


# --- The history ---

MOST_HISTORY_ROWS = 500
"""The rows of a table that a point keeps, the best first."""


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One bot at one time."""

    bot: str
    place: int
    matches: int
    mu: float
    sigma: float
    strength: float
    low: float
    high: float


def encode_point(results: int, rows: Sequence[LadderRow]) -> bytes:
    """Return a point for the store. Figures are rounded to what a chart can show."""
    figures = attrgetter("mu", "sigma", "strength", "low", "high")
    best = rows[:MOST_HISTORY_ROWS]
    kept = [[row.bot, row.matches, *(round(each, 2) for each in figures(row))] for row in best]
    return zlib.compress(json.dumps([results, kept], separators=(",", ":")).encode())


def decode_point(point: bytes) -> tuple[int, list[HistoryRow]]:
    """Return the number of results in the table, and its rows in their order."""
    results, kept = json.loads(zlib.decompress(point))
    return results, [HistoryRow(bot, place, *figures) for place, (bot, *figures) in enumerate(kept, start=1)]
