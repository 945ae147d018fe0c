"""The command `seatwise check-game`: checks a game from outside as its author should."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from seatwise.cli.arguments import Command, parse_count
from seatwise.output import AnswerOutput

if TYPE_CHECKING:
    from seatwise.testing import GameReport

OTHER_PROCESS_S = 600.0
"""Seconds that the same check may take in another process."""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "game", metavar="GAME", help="name of a game from outside; `seatwise games` lists them"
    )
    parser.add_argument(
        "--matches",
        type=parse_count,
        default=30,
        metavar="N",
        help="number of matches (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="number from which the matches follow"
    )
    parser.add_argument("--once", action="store_true", help="do not repeat the check in another process")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: Namespace) -> int:
    """Check, and print the report. Returns 1 if anything is wrong."""
    from seatwise.kits import find_kit
    from seatwise.testing import check_game

    with AnswerOutput() as answers:  # a game that prints, in whatever way, must not garble the report
        report = check_game(find_kit(arguments.game), matches=arguments.matches, seed=arguments.seed)
        if not arguments.once and not report.faults:
            report = _compare_processes(report, arguments)
        answers.print_line(json.dumps(asdict(report), indent=2) if arguments.json else str(report))
    return 1 if report.faults else 0


def _compare_processes(report: GameReport, arguments: Namespace) -> GameReport:
    """Repeat the check in a process with another order of sets. Return the report with what it has found."""
    asked = ["check-game", arguments.game, "--matches", str(arguments.matches), "--seed", str(arguments.seed)]
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "2" else "2"
    other = subprocess.run(
        [sys.executable, "-m", "seatwise", *asked, "--once", "--json"],
        env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, timeout=OTHER_PROCESS_S, check=False,
    )  # fmt: skip
    if other.returncode == 0 and json.loads(other.stdout)["digest"] == report.digest:
        return report
    why = "the same seed gives other matches in another process: something depends on the order of a set, or on the machine"
    return replace(report, faults=(*report.faults, why))


COMMAND = Command("check-game", "check a game from outside, as its author should", configure, run)
