"""The rows of the bench beside servers of others are optional: nothing else needs Node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[1] / "bench"


def test_without_node_the_rows_of_the_peers_say_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCH / "peers.py"), "--quick"]
    env = {**os.environ, "PATH": str(tmp_path)}
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    rows = [line for line in said.splitlines() if "beside" in line]
    assert len(rows) == 4
    assert all("not measured: needs Node" in row for row in rows)
    assert "0 of 0 bars are met." in said
