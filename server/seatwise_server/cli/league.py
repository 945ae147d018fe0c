"""`seatwise league`: runs a league from a file, and writes what is published of it."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from seatwise.cli.command import Command

INTERRUPTED = 130
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
    return _RUNS[args.command](args)


def _run(args: Namespace) -> int:
    import asyncio

    from seatwise_server.league import season
    from seatwise_server.league.progress import shown
    from seatwise_server.league.toml import read_league

    league = read_league(args.file)
    with shown(is_quiet=args.json) as show:
        played = asyncio.run(season.play(league, args.results, args.address or "", _token(args), show))
    if not played.is_over:
        print("The league is not over; the same command goes on with it.", file=sys.stderr)
        return INTERRUPTED
    if played.matches:
        rate = played.matches / played.seconds
        print(f"{played.matches} matches in {played.seconds:.1f} s, {rate:.2f} a second", file=sys.stderr)
    return 0


def _token(args: Namespace) -> str:
    """The admin's, for a server that is not our own."""
    from seatwise.cli.tokens import admin_token, is_here

    given = args.token or os.environ.get("SEATWISE_TOKEN") or ""
    return given or (admin_token() if args.address and is_here(args.address) else None) or ""


def _report(args: Namespace) -> int:
    from seatwise_server.league.publishing import publish

    publish(args.results)
    return 0


_RUNS = {"run": _run, "report": _report}

COMMAND = Command("league", "run a league from a file, and publish its table", configure, run)
