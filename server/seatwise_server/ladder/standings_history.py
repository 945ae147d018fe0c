"""Points of a ladder's history: what its table said of each bot at one time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from seatwise_server.ladder.published_table import LadderRow

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
    kept = [
        [
            row.bot,
            row.matches,
            *(round(each, 2) for each in (row.mu, row.sigma, row.strength, row.low, row.high)),
        ]
        for row in rows[:MOST_HISTORY_ROWS]
    ]
    return zlib.compress(json.dumps([results, kept], separators=(",", ":")).encode())


def decode_point(point: bytes) -> tuple[int, list[HistoryRow]]:
    """Return the number of results in the table, and its rows in their order."""
    results, kept = json.loads(zlib.decompress(point))
    return results, [HistoryRow(bot, place, *figures) for place, (bot, *figures) in enumerate(kept, start=1)]
