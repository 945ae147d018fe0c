"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import seatwise

README = (Path(__file__).parents[2] / "README.md").read_text()
MOST_LINES = 15


def the_bot() -> str:
    (code,) = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return code


def test_the_bot_of_the_readme_is_short() -> None:
    assert len([line for line in the_bot().splitlines() if line.strip()]) <= MOST_LINES


def test_the_bot_of_the_readme_plays(tmp_path: Path) -> None:
    (tmp_path / "highest.py").write_text(the_bot())
    done = subprocess.run(
        [sys.executable, "highest.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert "Highest" in done.stdout
    assert "greedy" in done.stdout


def test_the_bot_of_the_readme_beats_random() -> None:
    found: dict[str, Any] = {"__name__": "readme"}
    exec(the_bot(), found)
    results = seatwise.play([found["Highest"], "random"], matches=60, seed=1)
    mine, other = results.standings
    assert mine.interval[0] > other.interval[1]


def test_every_make_target_of_the_readme_is_there() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
