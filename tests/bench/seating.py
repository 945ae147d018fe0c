"""How often the server awaits Redis to seat and deliver one match. It counts calls, so a busy machine changes little."""

from __future__ import annotations

import runs
import table
from table import Row, at_most

MATCHES = (1, 64)
"""Matches at once. Alone, a match shares its calls with no other."""
BAR = 10


def rows(*, quick: bool = False) -> list[Row]:
    """Calls for each match, from its pairing to its delivery."""
    seconds = 4.0 if quick else 8.0
    found = {count: runs.store_calls(seconds, max(4, count)) for count in MATCHES}
    return [
        Row(f"awaited calls to Redis for each match, {max(4, count)} matches at once", calls)
        if count == 1
        else at_most(f"awaited calls to Redis for each match, {count} matches at once", calls, BAR, "calls")
        for count, calls in found.items()
    ]


if __name__ == "__main__":
    table.show(rows(quick=True))
