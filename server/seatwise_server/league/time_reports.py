"""Reads the times that the league's bots report for their answers. Each file is written by a bot and may hold anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatwise_server.league.settings import League

REPORT_SUFFIX = ".times"

LONGEST_REPORT = 1000
"""The most characters of a line that are read. A report is shorter."""


def read_time_reports(logs: Path, league: League) -> dict[tuple[str, str, int], float]:
    """Read the reports: milliseconds by bot, match and prompt. Other lines are skipped, as the last one of a bot that was killed."""
    found = {}
    for entrant in league.entrants:
        for match, prompt, took in _read_reports(logs / f"{entrant.name}{REPORT_SUFFIX}"):
            found[entrant.player, match, prompt] = took
    return found


def _read_reports(file: Path) -> Iterator[tuple[str, int, float]]:
    if not file.is_file():
        return
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in iter(lambda: lines.readline(LONGEST_REPORT), ""):
            try:
                told = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if _is_report(told):
                yield told["match"], told["prompt"], float(told["thought_ms"])


def _is_report(told: Any) -> bool:
    kinds = {"match": (str,), "prompt": (int,), "thought_ms": (int, float)}
    is_whole = isinstance(told, dict) and all(type(told.get(name)) in kind for name, kind in kinds.items())
    return is_whole and 0 <= told["thought_ms"] < 1e9
