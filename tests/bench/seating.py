"""How often the server awaits Redis to seat and deliver one match. It counts calls, so a busy machine changes little."""

from __future__ import annotations

import runs
import table
from table import Row, at_most

MATCHES = (64, 256)
"""Matches at once. The more there are, the more of them share a call."""
BAR = 10


def rows(*, quick: bool = False) -> list[Row]:
    """Calls for each match, from its pairing to its delivery."""
    seconds = 4.0 if quick else 8.0
    name = "awaited calls to Redis to seat and deliver a match, {} matches at once"
    return [at_most(name.format(count), runs.store_calls(seconds, count), BAR) for count in MATCHES]


if __name__ == "__main__":
    table.show(rows(quick=True))
