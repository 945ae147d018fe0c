"""Packages with games, as `pip install` leaves them behind, and the program that finds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def install_package(folder: Path, name: str, source: str, entry: str) -> None:
    """As `pip install` leaves a package behind."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[seatwise.hosted_games]\n{entry}\n")


def run_seatwise(folder: Path, *arguments: str, timeout_s: float = 90) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seatwise", *arguments],
        capture_output=True, text=True, timeout=timeout_s, cwd=folder, check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )  # fmt: skip
