"""`make bench`: what the server costs, beside servers of others and a bare echo in the same run. See docs/benchmarks.md.

python tests/bench/bench.py [--quick] [--only PART] [--data FOLDER] [--results FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import crowd
import doors
import flood_charges
import ladders
import offline
import peers
import readers
import table
import table_alone
import takeover
from table import Row

PARTS: dict[str, Callable[[bool, Path | None], list[Row]]] = {
    "doors": lambda quick, data: doors.rows(quick=quick, data=data),
    "table_alone": lambda quick, _: table_alone.rows(quick=quick),
    "peers": lambda quick, data: peers.rows(quick=quick, data=data),
    "crowd": lambda quick, data: crowd.rows(quick=quick, data=data),
    "offline": lambda quick, _: offline.rows(quick=quick),
    "takeover": lambda quick, data: takeover.rows(quick=quick, data=data),
    "flood_charges": lambda quick, data: flood_charges.rows(quick=quick, data=data),
    "readers": lambda quick, data: readers.rows(quick=quick, data=data),
    "ladders": lambda _, __: ladders.rows(),
}
"""In the order of docs/benchmarks.md. Each is a program of its own, too."""


def main() -> None:
    """Measures, shows, writes. A missed bar is told, it is no failure."""
    parser = argparse.ArgumentParser(description="What the server costs, beside a bare echo.")
    parser.add_argument(
        "--quick", action="store_true", help="once instead of three times: about five minutes"
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="may be given several times")
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="where the servers keep their data for a while"
    )
    parser.add_argument("--results", type=Path, default=Path("bench-results.json"), metavar="FILE")
    args = parser.parse_args()
    began, rows = time.monotonic(), list[Row]()
    for name in args.only or PARTS:
        print(f"  {name}", file=sys.stderr, flush=True)
        rows += PARTS[name](args.quick, args.data)
    table.show(rows)
    table.write(rows, args.results)
    print(f"In {time.monotonic() - began:.0f} s. As JSON: {args.results}")


if __name__ == "__main__":
    main()
