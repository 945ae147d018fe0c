"""The two doors of bots side by side, gRPC and WebSocket, with few and many matches: a durable move as a share of a gRPC echo."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import runs
import table
from runs import Window
from table import Row, at_least

COUNTS = (16, 64, 256, 1024)
"""Matches at once."""
BARS = {64: 0.65, 256: 1.0, 1024: 1.2}
"""Shares of an echo, by WebSocket."""
SECONDS = 4.0
DOORS = {False: "gRPC", True: "WebSocket"}


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """Both doors with few, many and very many matches; each series has an echo of its own."""
    series = [_one_series(data) for _ in range(1 if quick else 3)]
    found = []
    for count in COUNTS:
        for by_websocket, door in DOORS.items():
            name = f"share of echo, {door}, {count:,} matches"
            share = median(echo / moves[count, by_websocket].server_us for echo, moves in series)
            has_bar = by_websocket and count in BARS
            found.append(at_least(name, share, BARS[count]) if has_bar else Row(name, share))
    for count in COUNTS:
        for by_websocket, door in DOORS.items():
            name = f"server CPU per durable move, {door}, {count:,} matches"
            found.append(Row(name, median(moves[count, by_websocket].server_us for _, moves in series), "us"))
            spent = median(moves[count, by_websocket].redis_us for _, moves in series)
            found.append(Row("... and of the embedded Redis", spent, "us"))
    return found


def _one_series(data: Path | None) -> tuple[float, dict[tuple[int, bool], Window]]:
    """Server CPU of an echo in microseconds, and what moves cost by number of matches and door."""
    echo = runs.echo(SECONDS).server_us
    cases = [(count, by_websocket) for count in COUNTS for by_websocket in DOORS]
    return echo, {
        (count, by_websocket): runs.matches(SECONDS, count, data=data, by_websocket=by_websocket)
        for count, by_websocket in cases
    }


if __name__ == "__main__":
    table.show(rows(quick=True))
