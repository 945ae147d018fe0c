"""A durable move by gRPC and by WebSocket, as a share of a gRPC echo, with few and many matches; the journal; bots of the SDK."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import runs
import table
from runs import Window
from table import Row, at_least, at_most

COUNTS = (64, 256, 1024)
"""Matches at once."""
BARS = {
    False: {64: 0.45, 256: 0.75},
    True: {64: 0.65, 256: 1.0, 1024: 1.2},
}
"""Shares of an echo, by gRPC and by WebSocket."""
SDK_BOT_US = 170
"""CPU of a move of a bot of the SDK, in microseconds, at most."""
SECONDS = 4.0
DOORS = {False: "gRPC", True: "WebSocket"}


class Series:
    """Everything once, one soon after the other, so that ratios hold on a machine that is shared."""

    def __init__(self, data: Path | None) -> None:
        self.echo_us = runs.echo(SECONDS).server_us
        self.moves: dict[tuple[int, bool], Window] = {
            (count, by_websocket): runs.matches(SECONDS, count, data=data, by_websocket=by_websocket)
            for count in COUNTS
            for by_websocket in DOORS
        }
        unkept = runs.matches(SECONDS, COUNTS[0], journal="none", data=data)
        self.journal_percent = 100 * (self.moves[COUNTS[0], False].server_us / unkept.server_us - 1)


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """Medians over the series."""
    series = [Series(data) for _ in range(1 if quick else 3)]
    found = [Row("server CPU per echo", median(it.echo_us for it in series), "us")]
    for by_websocket, door in DOORS.items():
        for count in COUNTS:
            moves = [it.moves[count, by_websocket] for it in series]
            share = median(it.echo_us / move.server_us for it, move in zip(series, moves, strict=True))
            name, bar = f"share of echo, {door}, {count:,} matches", BARS[by_websocket].get(count)
            found += [
                at_least(name, share, bar) if bar else Row(name, share),
                Row("... server CPU per durable move", median(it.server_us for it in moves), "us"),
                Row("... and of the embedded Redis", median(it.redis_us for it in moves), "us"),
            ]
    found.append(at_most("cost of the journal in CPU per move", median(it.journal_percent for it in series), 20, "%"))  # fmt: skip
    for by_websocket, door in DOORS.items():
        us = median(runs.sdk_bots_us(SECONDS, by_websocket=by_websocket) for _ in series)
        found.append(at_most(f"CPU of a bot of the SDK per move, {door}", us, SDK_BOT_US, "us"))
    return found


if __name__ == "__main__":
    table.show(rows(quick=True))
