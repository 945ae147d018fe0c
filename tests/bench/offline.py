"""Without a server: self-play of local bots, and the verification of the records, in one process and on all cores."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import table
from table import Row, at_least

MATCHES = 400
QUICK_MATCHES = 100


def rows(*, quick: bool = False) -> list[Row]:
    """Moves and records a second of real time, with the start of Python."""
    matches = QUICK_MATCHES if quick else MATCHES
    with TemporaryDirectory(prefix="seatwise-bench-") as folder:
        records = Path(folder) / "records.jsonl"
        play_s = _run("play", "ugo", *["random"] * 4, "--matches", str(matches), "--records", str(records))
        moves = sum(_moves_in(line) for line in records.read_bytes().splitlines())
        alone_s, shared_s = (_run("verify", "--jobs", jobs, str(records)) for jobs in ("1", "auto"))
    return [
        at_least("seatwise play, UGO!, one process", moves / play_s, 60_000, "moves/s"),
        at_least("seatwise verify, one process", matches / alone_s, 400, "records/s"),
        at_least("seatwise verify, all cores", matches / shared_s, 700, "records/s"),
    ]


def _run(*command: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "seatwise", *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _moves_in(line: bytes) -> int:
    return sum(entry["kind"] == "move" for entry in json.loads(line)["entries"])


if __name__ == "__main__":
    table.show(rows(quick=True))
