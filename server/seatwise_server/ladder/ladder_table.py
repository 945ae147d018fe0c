"""The table of a ladder, as everybody is shown it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from seatwise_server.competition.ratings.openskill_ratings import Rating
from seatwise_server.ladder.strength_worker import StrengthsByBot


@dataclass(frozen=True, slots=True)
class LadderRow:
    """Where one bot stands. Ratings order the table and pair its bots; the strength is what it says of them."""

    bot: str
    mu: float
    sigma: float
    matches: int
    strength: float
    low: float
    high: float
    provisional: bool
    peers: tuple[str, ...]
    """Those near it in the table from whom its results do not tell it apart."""
    off: str
    """Why it is off the ladder; empty if it is on it."""


def build_table(
    rated: Sequence[tuple[str, Rating]], strengths: StrengthsByBot, off: Mapping[str, str]
) -> list[LadderRow]:
    """In the order of the ratings; of whom nothing is known yet but that, that is said."""
    unknown = [0.0, 0.0, 0.0, True, []]
    lines = []
    for bot, rating in rated:
        strength, low, high, provisional, peers = strengths.get(bot, unknown)
        known = (strength, low, high, provisional, tuple(peers))
        lines.append(LadderRow(bot, rating.mu, rating.sigma, rating.matches, *known, off.get(bot, "")))
    return lines


def encode_table(lines: Sequence[LadderRow]) -> bytes:
    """For the store. Numbers are written to the last digit."""
    return json.dumps([asdict(line) for line in lines], separators=(",", ":")).encode()


def decode_table(table: bytes) -> list[LadderRow]:
    """The inverse of `written`."""
    return [LadderRow(**{**line, "peers": tuple(line["peers"])}) for line in json.loads(table)]
