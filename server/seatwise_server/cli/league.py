"""`seatwise league`: runs a league from a file, and writes what is published of it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from seatwise.cli.command import Command

DEFAULT_RESULTS = Path("league-results")


def configure(parser: ArgumentParser) -> None:
    """Adds the arguments."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="play it; what was played before is not played again")
    run.add_argument("file", type=Path, metavar="LEAGUE.TOML", help="what the league is; see docs/league.md")
    run.add_argument(
        "--address", metavar="HOST:PORT", help="a server that runs (default: one of the league's own)"
    )
    run.add_argument("--token", help="that server's admin token (default: $SEATWISE_TOKEN, or its file)")
    report = commands.add_parser("report", help="write report, table and bundle anew from what was played")
    for each in (run, report):
        each.add_argument("--json", action="store_true", help="print the table as JSON")
    run.add_argument(
        "--results",
        type=Path,
        default=DEFAULT_RESULTS,
        metavar="FOLDER",
        help="where all goes (default: %(default)s)",
    )
    report.add_argument(
        "results",
        type=Path,
        nargs="?",
        default=DEFAULT_RESULTS,
        metavar="FOLDER",
        help="default: %(default)s",
    )


def run(args: Namespace) -> int:
    """Runs the sub-command."""
    from seatwise_server.league.toml import read_league

    if args.command == "run":
        print(read_league(args.file), file=sys.stderr)
    return 1


COMMAND = Command("league", "run a league from a file, and publish its table", configure, run)
