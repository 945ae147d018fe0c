"""What a move costs a bot of the SDK: CPU, messages, bytes, tasks and waits, with one match and with 16, by gRPC and WebSocket."""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import runs
from table import Row, show

MATCHES = (1, 16)
"""Matches of one bot at once."""
PASSES = 3
SECONDS = 5.0
COUNTED = {
    "read": "messages read",
    "written": "messages written",
    "bytes": "bytes of messages",
    "tasks": "tasks made",
    "waits": "times that a thread waited",
}


def rows(*, quick: bool = False) -> list[Row]:
    """For the table: information, without a bar."""
    found = []
    for matches in MATCHES:
        passes = [runs.sdk_moves(SECONDS, matches) for _ in range(1 if quick else PASSES)]
        found += _rows_of(f"four bots of the SDK in a process, {matches} at once each", passes)
    passes = [runs.sdk_moves(SECONDS, MATCHES[-1], by_web_socket=True) for _ in range(1 if quick else PASSES)]
    cpu_us = statistics.median(each["cpu_us"] for each in passes)
    return [*found, Row(f"the same by WebSocket, {MATCHES[-1]} at once each: CPU per move", cpu_us, "us")]


def _rows_of(bots: str, passes: list[dict[str, Any]]) -> list[Row]:
    found = [Row(f"{bots}: CPU per move", statistics.median(each["cpu_us"] for each in passes), "us")]
    for name, told in COUNTED.items():
        value = statistics.median(each["count"].get(name, 0) for each in passes)
        found.append(Row(f"... {told} per move", value))
    return found


def main() -> None:
    """Shows the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one pass")
    show(rows(quick=parser.parse_args().quick))


if __name__ == "__main__":
    main()
