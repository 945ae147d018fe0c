"""Many live matches in one process at a slow pace: the memory of each, and how soon a prompt is delivered.

python tests/bench/crowd.py [--quick]
"""

from __future__ import annotations

import argparse
import gc
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from processes import Child, child
from table import Row, at_most, show

MATCHES, QUICK_MATCHES = 5000, 1000
SEATS = 2
BOTS, QUICK_BOTS = 24, 16
RATE, QUICK_RATE = 500, 250
"""Moves a second, by all matches together."""
SECONDS, QUICK_SECONDS = 30, 8
FIRST = 20
"""Moves of each match, on average, before all that: so that it has something to remember."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """What came of it."""

    matches: int
    kib_each: float
    """Of the server's memory, beyond what it takes with the same bots and no match."""
    p99_ms: float
    """From a move sent to the next seat asked."""
    rate: float


def crowd(*, quick: bool = False, data: Path | None = None) -> Crowd:
    """Once."""
    matches, bots = (QUICK_MATCHES, QUICK_BOTS) if quick else (MATCHES, BOTS)
    seconds, rate = (QUICK_SECONDS, QUICK_RATE) if quick else (SECONDS, RATE)
    with (
        TemporaryDirectory(prefix="seatwise-bench-", dir=data) as name,
        child("match_server.py", Path(name) / "data", log=Path(name) / "server.log") as server,
    ):
        told = server.hear()
        pids = (told["pid"], told["redis"])
        what = ("--matches", matches, "--seats", SEATS, "--bots", bots, "--rate", rate)
        how = ("--seconds", seconds, "--first", FIRST)
        where = (told["address"], "--admin", told["admin"], "--pids", *pids)
        with child("patient_load.py", *where, *what, *how, log=Path(name) / "load.log") as load:
            load.hear()
            empty = resident_kib(told["pid"])
            heard = _after_play(load)
            full = resident_kib(told["pid"])
            load.tell()
    return Crowd(matches, (full - empty) / matches, heard["p99_ms"], heard["rate"])


def _after_play(load: Child) -> dict[str, Any]:
    gc.collect()
    load.tell()
    heard: dict[str, Any] = load.hear()
    if heard["rejections"]:
        raise RuntimeError(f"moves were rejected: {heard['rejections'][0]}")
    return heard


def resident_kib(pid: int) -> float:
    """Resident memory of a process that is its own; 0 where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except FileNotFoundError:
        return 0.0
    return float(sum(int(line.split()[1]) for line in lines if line.startswith("Private_")))


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """For the table."""
    found = crowd(quick=quick, data=data)
    name = f"{found.matches:,} live matches in one process, {found.rate:,.0f} moves/s"
    return [
        at_most("memory of a live match, beyond its streams", found.kib_each, 16, "KiB"),
        at_most(f"p99 of prompt delivery, {name}", found.p99_ms, 50, "ms"),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_MATCHES} matches, a minute")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    show(rows(quick=args.quick, data=args.data))
