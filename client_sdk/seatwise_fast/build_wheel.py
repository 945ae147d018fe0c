"""Builds the wheel of `seatwise_fast` from a copy of this folder, and puts it into dist/ of the clone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import copyfile, copytree, ignore_patterns
from typing import Final

SOURCE: Final = Path(__file__).resolve().parent
DIST: Final = SOURCE.parents[1] / "dist"


def build_wheel(target: Path = DIST) -> Path:
    """Build the wheel with the setuptools and the cffi of this environment. Return its path."""
    with tempfile.TemporaryDirectory() as scratch:
        copied = Path(scratch) / "seatwise_fast"
        copytree(SOURCE, copied, ignore=ignore_patterns("*.so", "__pycache__", "build", "dist"))
        command = [sys.executable, "setup.py", "--quiet", "bdist_wheel"]
        subprocess.run(command, cwd=copied, check=True, capture_output=True)
        [built] = (copied / "dist").glob("*.whl")
        target.mkdir(parents=True, exist_ok=True)
        return Path(copyfile(built, target / built.name))


if __name__ == "__main__":
    print(build_wheel())
