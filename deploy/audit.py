"""Looks up the versions of a lock file in the public database of vulnerabilities: `python deploy/audit.py requirements.lock`.

Where the database cannot be reached, it lists the versions instead, so that they can be looked up elsewhere. The exit
code is 1 if a version has a known vulnerability, else 0.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PIP_AUDIT = "pip-audit==2.10.1"


def ask_database(lock: Path) -> list[dict[str, Any]]:
    """Returns what pip-audit says of each package. An empty list means that it could not ask."""
    uv = Path(sys.executable).parent / "uv"
    command = [str(uv), "tool", "run", "--quiet", "--from", PIP_AUDIT, "pip-audit", "--format", "json"]
    options = ["--requirement", str(lock), "--disable-pip", "--require-hashes", "--progress-spinner", "off"]
    found = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    try:
        answers: list[dict[str, Any]] = json.loads(found.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return []
    return [answer for answer in answers if "vulns" in answer]


def report_of(answers: Sequence[dict[str, Any]], lock: str) -> tuple[list[str], int]:
    """Returns the lines to print, and the exit code."""
    if not answers:
        pinned = [
            line.split(" ")[0]
            for line in lock.splitlines()
            if "==" in line and not line.startswith(("#", " "))
        ]
        return ["The database cannot be reached from here. The locked versions are:", *pinned], 0
    bad = [
        f"{answer['name']} {answer['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no version'}"
        for answer in answers
        for found in answer["vulns"]
    ]
    return [*bad, f"{len(answers)} versions looked up, {len(bad)} known vulnerabilities"], 1 if bad else 0


def main() -> int:
    """Prints the report for the lock file that the arguments name."""
    lock = Path(sys.argv[1])
    lines, code = report_of(ask_database(lock), lock.read_text(encoding="utf-8"))
    print(*lines, sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
