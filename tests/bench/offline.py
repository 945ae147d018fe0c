"""Without a server: self-play of local bots, and the verification of the records, in one process.

Python writes its compiled modules before anything is measured, as at an installed package. Where they may not be written, each start
compiles all modules again, which takes as long as ten thousand moves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import table
from table import Row, at_least

MATCHES = 2_000
QUICK_MATCHES = 400


def rows(*, quick: bool = False) -> list[Row]:
    """Moves and records a second of real time, with the start of Python."""
    matches = QUICK_MATCHES if quick else MATCHES
    with TemporaryDirectory(prefix="seatwise-bench-") as folder:
        records = Path(folder) / "records.jsonl"
        run = partial(_run, {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder})
        play = ("play", "ugo", *["random"] * 4, "--records", str(records), "--matches")
        run(*play, "1")
        run("verify", "--jobs", "1", str(records))
        play_s = run(*play, str(matches))
        moves = sum(_moves_in(line) for line in records.read_bytes().splitlines())
        verify_s = run("verify", "--jobs", "1", str(records))
    return [
        at_least("seatwise play, UGO!, one process", moves / play_s, 60_000, "moves/s"),
        at_least("seatwise verify, one process", matches / verify_s, 600, "records/s"),
    ]


def _run(environment: Mapping[str, str], *command: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "seatwise", *command], check=True, env=environment, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - began


def _moves_in(line: bytes) -> int:
    return sum(entry["kind"] == "move" for entry in json.loads(line)["entries"])


if __name__ == "__main__":
    table.show(rows(quick=True))
