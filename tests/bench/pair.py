"""Two referee processes beside one, each on a core of its own: what a move costs.

python tests/bench/pair.py [--quick]
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from processes import child
from serving import FRONT, REFEREE, serving
from table import Row, at_most, show

MATCHES = 200
"""At each referee."""
RATE = 700
"""Moves a second at each: what leaves room for the load and for Redis on a machine of two cores."""
SEATS = 4
SECONDS, QUICK_SECONDS = 10, 5
PASSES, QUICK_PASSES = 3, 1


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU of all referees for one durable move, in microseconds."""

    referees: int
    us: float
    rate: float


def referees(count: int, seconds: float, data: Path | None = None) -> Cost:
    """So many, each on a core of its own as far as there are cores, and each with the same to do."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    with serving(data) as all_of_it:
        front = all_of_it.start(*FRONT)
        crew = [
            all_of_it.start(*REFEREE, core=cores[number % len(cores)] if cores else None)
            for number in range(count)
        ]
        args: list[Any] = [front.address, "--admin", front.token]
        args += ["--referees", *[each.address for each in crew], "--pids", *[each.pid for each in crew]]
        args += ["--matches", MATCHES * count, "--seats", SEATS, "--rate", RATE * count, "--seconds", seconds]
        with child("patient_load.py", *args, "--first", 2, log=all_of_it.folder / "load.log") as load:
            load.hear()
            load.tell()
            heard = load.hear()
            load.tell()
    if heard["rejections"]:
        raise RuntimeError(f"moves were rejected: {heard['rejections'][0]}")
    *spent, _ = heard["cpu_us"]
    return Cost(count, sum(spent), heard["rate"])


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """For the table: medians, and the ratio of those that were measured one soon after the other."""
    seconds, passes = (QUICK_SECONDS, QUICK_PASSES) if quick else (SECONDS, PASSES)
    found = [(referees(1, seconds, data), referees(2, seconds, data)) for _ in range(passes)]
    return [
        at_most(
            "CPU per move with two referees, beside one",
            median(two.us / one.us for one, two in found),
            1.18,
            "x",
        ),
        Row("... with one", median(one.us for one, _ in found), "us"),
        Row("... with two", median(two.us for _, two in found), "us"),
        Row("durable moves by two referees at that", median(two.rate for _, two in found), "moves/s"),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="once, half a minute")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    show(rows(quick=args.quick, data=args.data))
