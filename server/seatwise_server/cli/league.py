"""`seatwise league`: plays a league from a file, and writes its report, table and bundle."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from seatwise.cli.arguments import (
    Command,
    InputFile,
    add_deck_argument,
    add_security_arguments,
    add_unit_arguments,
    output_folder_parser,
    parse_count,
    read_unit_options,
    security_of,
    use_deck_files,
)
from seatwise.defaults import FAILED, INTERRUPTED, TOKEN_VARIABLE

if TYPE_CHECKING:
    from seatwise_server.league.season import SeasonRun

GOES_ON = "Finished matches are kept; run the same command again to continue."
DEFAULT_RESULTS = "league-results"
parse_results = output_folder_parser(
    "season.jsonl",
    "season.bundle",
    "report.html",
    "standings.json",
    "standings.csv",
    "results.csv",
    "crosstable.csv",
)


def configure(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, configure_verb, act, text in (
        ("run", _configure_run, _run_league, "play the league; finished matches are not played again"),
        ("report", _configure_report, _report_season, "write report, table and bundle again from the finished matches"),
        ("reinstate", _configure_reinstate, _reinstate_entrant,
         "readmit an entrant that was given up; its results stay, and the next run starts it again"),
        ("annul", _configure_annul, _annul_walk_over,
         "annul a walk-over, for example after a fault of the network; the next run plays the match again"),
        ("gifts", _configure_gifts, _show_gifts, "find bots whose moves give more to one bot than to the rest of the table"),
    ):  # fmt: skip
        parser = verbs.add_parser(name, help=text, description=text)
        parser.set_defaults(act=act)
        configure_verb(parser)


def _configure_run(parser: ArgumentParser) -> None:
    text = "the league file; see docs/league.md"
    parser.add_argument("file", type=InputFile, metavar="LEAGUE.TOML", help=text)
    text = "a running server (default: start one for this league, or none for local tables)"
    parser.add_argument("--address", metavar="HOST:PORT", help=text)
    text = f"admin token of that server (default: ${TOKEN_VARIABLE}, or its file)"
    parser.add_argument("--token", help=text)
    parser.add_argument(
        "--results", type=parse_results, default=DEFAULT_RESULTS, metavar="FOLDER",
        help="folder for everything that the league writes (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", default="", help="a text from which all deals at local tables follow; the parts of a season have the same"
    )  # fmt: skip
    add_unit_arguments(parser, "due matches at local tables")
    parser.add_argument(
        "--stop-at-walk-over", action="store_true",
        help="let open matches end and stop when a match is lost by walk-over, so that you can annul it in time",
    )  # fmt: skip
    parser.add_argument(
        "--without", action="append", default=[], metavar="NAME",
        help="go on without this entrant, such as one that cannot be imported; may be repeated. Before the first match it is left "
        "out, afterwards a substitute resigns its matches",
    )  # fmt: skip
    add_security_arguments(parser)
    _add_table(parser)


def _configure_gifts(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", type=InputFile, metavar="FILE", help="a season's bundle, or a file of records"
    )
    parser.add_argument(
        "--deals", type=parse_count, default=32, metavar="N",
        help="deals in which each move is judged (default: %(default)s)",
    )  # fmt: skip
    add_unit_arguments(parser, "batches of records", jobs=1)
    parser.add_argument("--json", action="store_true", help="print the pairs as JSON")


def _configure_report(parser: ArgumentParser) -> None:
    _add_results(parser)
    _add_table(parser)


def _configure_reinstate(parser: ArgumentParser) -> None:
    parser.add_argument("entrant", help="its name in the league file")
    text = "how the cause was repaired; this text is published"
    parser.add_argument("--why", required=True, metavar="TEXT", help=text)
    _add_results(parser)


def _configure_annul(parser: ArgumentParser) -> None:
    text = "its id in the schedule, as in r1-t2; the page names it"
    parser.add_argument("table", metavar="MATCH", help=text)
    parser.add_argument("--why", required=True, metavar="TEXT", help="the reason; this text is published")
    _add_results(parser)


def _add_results(parser: ArgumentParser) -> None:
    text = "folder of the league (default: %(default)s)"
    parser.add_argument(
        "results", type=parse_results, nargs="?", default=DEFAULT_RESULTS, metavar="FOLDER", help=text
    )


def _add_table(parser: ArgumentParser) -> None:
    add_deck_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the table as JSON")


def run(args: Namespace) -> int:
    """Run the verb and return the exit code. Raises `SeatwiseError`."""
    return int(args.act(args))


def _run_league(args: Namespace) -> int:
    import asyncio

    from seatwise.cli.tokens import token_at
    from seatwise.errors import TemporaryError
    from seatwise_server.league import season
    from seatwise_server.league.progress import show_progress

    use_deck_files(args.deck)
    results, address, decks = Path(args.results), args.address or "", tuple(map(os.path.abspath, args.deck))
    league, gives_up = season.read_league_without(
        Path(args.file), args.without, results, has_server=bool(address)
    )
    try:
        with show_progress(is_quiet=args.json) as screen:
            token, workers = token_at(address, args.token), read_unit_options(args)
            where = season.LeagueServer(address, token, decks, security_of(args), workers, args.seed)
            playing = season.play_league(
                league, results, where, screen, stops_at_walk_over=args.stop_at_walk_over, gives_up=gives_up
            )
            played = asyncio.run(playing)
    except TemporaryError as error:
        print(f"seatwise league: the connection to the server was lost: {error}\n{GOES_ON}", file=sys.stderr)
        return FAILED
    _print_pace(played)
    if args.out:
        print(f"{args.out}: {played.matches} matches of the season; --merge puts all parts together")
        return 0 if played.is_over else INTERRUPTED
    _publish_season(args)
    if not played.is_over:
        due = f"{played.due} matches are due next: --units 0:{played.due}, where season.jsonl is as it is now"
        print(f"The league is not over. {due if args.merge else GOES_ON}", file=sys.stderr)
        return INTERRUPTED
    return 0


def _print_pace(played: SeasonRun) -> None:
    text = "There was no match left to play; for a new season, choose another folder with --results"
    if played.matches:
        rates = (
            f"{played.matches / played.seconds:.2f} matches/s, {played.moves / played.seconds:.0f} moves/s"
        )
        own = "" if played.new_results == played.results else f", {played.new_results} of them in this run"
        void = played.matches - played.new_results
        own += f", and {void} void" if void > 0 else ""
        took = f"{played.results} of {played.expected} matches are over{own}, in {played.seconds:.1f} s"
        text = f"{took} ({rates})"
    print(text, file=sys.stderr)


def _report_season(args: Namespace) -> int:
    use_deck_files(args.deck)
    _publish_season(args)
    return 0


def _reinstate_entrant(args: Namespace) -> int:
    from seatwise_server.league.publishing import reinstate_entrant

    reinstate_entrant(Path(args.results), args.entrant, args.why)
    print(f"The next `seatwise league run` starts {args.entrant} again; its lost matches stay lost")
    return 0


def _annul_walk_over(args: Namespace) -> int:
    from seatwise_server.league.publishing import annul_walk_over

    annul_walk_over(Path(args.results), args.table, args.why)
    print(f"The next `seatwise league run` plays {args.table} again")
    return 0


def _publish_season(args: Namespace) -> None:
    from seatwise_server.cli import table
    from seatwise_server.league.publishing import publish_season
    from seatwise_server.league.table import column_heads, row_cells

    results = Path(args.results)
    published = publish_season(results)
    standings = published.standings
    if args.json:
        print(json.dumps(standings | {"digest": published.digest or None}, indent=2))
        return
    rows = [[row["name"], str(row["rank"]), *row_cells(standings, row)] for row in standings["rows"]]
    table.show_table(standings["league"], ["entrant", "rank", *column_heads(standings)], rows)
    if withheld := standings.get("withheld", 0):
        print(f"Results withheld until their deals are over: {withheld}")
    if published.verdict:
        print(published.verdict)
    print(f"The page is {results / 'report.html'}")
    if published.digest:
        command = f"seatwise verify {results / 'season.bundle'} --chain {published.digest}"
        print(f"Anyone can check the season: {command}")


def _show_gifts(args: Namespace) -> int:
    """Print the pairs, the most surprising first."""
    from dataclasses import asdict

    from seatwise.output import show_progress
    from seatwise_server.cli import table
    from seatwise_server.league.par import count_records, report_gifts

    work = read_unit_options(args)
    file = Path(args.file)
    total = count_records(file)
    with show_progress(total, lambda done: f"{done} of {total} matches", is_quiet=args.json) as advance:
        found = report_gifts(file, args.deals, advance, work)
    if args.units:
        print(f"{args.out}: a part of {args.file}; --merge puts all parts together")
        return 0
    if args.json:
        print(json.dumps({"pairs": [asdict(each) for each in found]}, indent=2))
        return 0
    rows = [
        [each.giver, each.taker, str(each.matches), f"{each.gain:+.2f}", f"{each.low:+.2f} to {each.high:+.2f}",
         f"{each.corrected_p_value:.3f}", "yes" if each.is_remarkable else "no"]
        for each in found
    ]  # fmt: skip
    heads = ["giver", "taker", "matches", "gain", "95 % interval", "p, corrected", "named"]
    table.show_table("Gifts by moves", heads, rows)
    return 0


COMMAND = Command("league", "run a league from a file and publish its table", configure, run)
