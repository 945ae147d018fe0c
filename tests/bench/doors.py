"""A durable move by gRPC and by WebSocket: under full load, at low rates, its delay in echoes; and bots of the SDK."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import runs
import table
from runs import Window
from table import Row, at_most

MATCHES = 256
"""Matches at once, as fast as they go."""
REDIS_US = 12
LOW_RATE, LOW_US, LOW_REDIS_US = 300, {"gRPC": 450, "WebSocket": 350}, 150
"""Moves a second, and the CPU of each: here a batch is often one move, with an `fsync` of its own."""
DELAY_RATE, P99_ECHOES = 1_000, {"gRPC": 3.5, "WebSocket": 2.0}
SDK_BOT_US = 170
"""CPU of a move of a bot of the SDK, in microseconds, at most."""
SECONDS = 4.0
DOORS = ("gRPC", "WebSocket")


class Series:
    """Everything once, one soon after the other, so that ratios hold on a machine that is shared."""

    def __init__(self, data: Path | None) -> None:
        self.echo = runs.echo(SECONDS, DELAY_RATE)
        self.moves: dict[tuple[str, int], Window] = {
            (door, rate): runs.matches(SECONDS, MATCHES, rate, data=data, by_websocket=door != "gRPC")
            for door in DOORS
            for rate in (0, LOW_RATE, DELAY_RATE)
        }


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """Medians over the series."""
    series = [Series(data) for _ in range(1 if quick else 3)]

    def server_us(door: str, rate: int) -> float:
        return median(it.moves[door, rate].server_us for it in series)

    def redis_us(rate: int) -> float:
        return median(it.moves[door, rate].redis_us for it in series for door in DOORS)

    def p99(door: str) -> float:
        return median(it.moves[door, DELAY_RATE].p99_ms / it.echo.p99_ms for it in series)

    low = f"at {LOW_RATE} moves a second"
    sdk_us = median(runs.sdk_bots_us(SECONDS) for _ in series)
    return [
        *(Row(f"server CPU a move, {MATCHES} matches, {door}", server_us(door, 0), "us") for door in DOORS),
        at_most(f"Redis, CPU a move, {MATCHES} matches", redis_us(0), REDIS_US, "us"),
        *(at_most(f"server CPU a move {low}, {door}", server_us(door, LOW_RATE), LOW_US[door], "us") for door in DOORS),
        at_most(f"Redis, CPU a move {low}", redis_us(LOW_RATE), LOW_REDIS_US, "us"),
        *(at_most(f"p99 at {DELAY_RATE:,} moves a second, in echoes, {door}", p99(door), P99_ECHOES[door], "x") for door in DOORS),
        at_most("CPU a move of a bot of the SDK, gRPC", sdk_us, SDK_BOT_US, "us"),
    ]  # fmt: skip


if __name__ == "__main__":
    table.show(rows(quick=True))
