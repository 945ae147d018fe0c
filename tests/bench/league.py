"""A league of local bots over gRPC: matches a second, and how much of the machine it keeps busy. Its ceiling are the bots of the SDK.

python tests/bench/league.py
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from processes import cpu_of_all_s
from table import Row, show

LEAGUE = Path(__file__).parents[2] / "docs/leagues/ugo.toml"
RATES = re.compile(r"([\d.]+) matches/s, (\d+) moves/s")


def rows() -> list[Row]:
    """For the table; the start of its server and bots is in the time of the cores, and not in the rates."""
    began, before = time.monotonic(), cpu_of_all_s()
    with TemporaryDirectory(prefix="seatwise-bench-") as folder:
        command = (sys.executable, "-m", "seatwise", "league", "run", str(LEAGUE), "--results", folder)
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = RATES.search(told.stderr)
    assert found, told.stderr
    busy = (cpu_of_all_s() - before) / (time.monotonic() - began)
    return [
        Row("a league of local bots, tables of three", float(found[1]), "matches/s"),
        Row("... beside the bots of the SDK above", float(found[2]), "moves/s"),
        Row("... cores that it keeps busy", busy),
    ]


if __name__ == "__main__":
    show(rows())
