"""`seatwise demo`: a server, a ladder, four bots as processes, some matches, their verified records and the standings."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from google.protobuf.json_format import MessageToDict

from seatwise.child_process import open_child
from seatwise.cli import arguments
from seatwise.cli.arguments import Command, program_name
from seatwise.client import Client
from seatwise.errors import SeatwiseError, UsageError
from seatwise.kits import DEFAULT_GAME, KITS, OWN_KITS
from seatwise.output import writing_file
from seatwise.v1 import ladder_pb2
from seatwise.v1.time_control_pb2 import TimeControl
from seatwise_server.cli import table
from seatwise_server.cli.ladder import show_standings

DEMOS = {kit.name: kit.demo for kit in OWN_KITS if kit.demo is not None}
"""The demo of each game that has one."""
LADDER = "ladders/demo"
MATCHES_AT_ONCE = 8
"""Matches that each bot plays at the same time."""
ADDRESS_LINE = "Seatwise listens on "
PAGES_LINE = "Pages: "
"""The beginnings of two lines that `seatwise serve` prints."""
DEMO_GUESTS = 8
LONGEST_DEMO_S = 300.0
POLL_S = 0.1
BOTS_END_S = 10.0
TABLE_S = 120.0
"""Seconds to wait for the table: it follows the results within a second or two, unless the machine is busy."""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--game", default=DEFAULT_GAME, choices=list(DEMOS), help="game to play (default: %(default)s)"
    )
    text = "number of matches (default: %(default)s)"
    parser.add_argument("--matches", type=arguments.parse_count, default=24, metavar="N", help=text)
    text, records = "file for the records (default: %(default)s)", "demo-records.jsonl"
    parser.add_argument("--records", type=arguments.parse_output, default=records, metavar="FILE", help=text)
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    text = "keep the server and its pages until Ctrl-C, so that you can look at the matches"
    parser.add_argument("--keep", action="store_true", help=text)


def run(args: Namespace) -> int:
    """Play the demo and return the exit code. All processes are ended, even after an error."""
    try:  # before the matches are played, not after
        Path(args.records).open("a").close()
    except OSError as error:
        raise UsageError(f"--records {args.records}: {error.strerror}") from None
    signal.signal(signal.SIGTERM, _end_demo)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seatwise-demo-")))
        address, pages = stack.enter_context(_run_server(folder, takes_guests=args.keep))
        print(f"Watch the matches: {pages}\nThe ladder: {pages}{LADDER}", file=sys.stderr, flush=True)
        admin = stack.enter_context(Client(address, token=(folder / "admin.token").read_text().strip()))
        ladder = _Ladder(admin, args.game)
        players = [
            stack.enter_context(_run_bot(admin, address, name, args)) for name in DEMOS[args.game].bots
        ]
        ladder.play_matches(args.matches, players)
        records = [admin.get_record(name) for name in ladder.list_matches()]
        standings = ladder.read_standings(len(records))
        if args.keep:
            code = _print_report(records, standings, args)
            text = f"The server stays up: {pages} shows the matches. Play yourself: {pages}#play. Press Ctrl-C to end it."
            print(text, file=sys.stderr, flush=True)
            with suppress(KeyboardInterrupt):
                signal.pause()
            return code
    return _print_report(records, standings, args)


def _end_demo(signum: int, _frame: object) -> None:
    """End as after an error, so that all processes are ended first."""
    raise SystemExit(128 + signum)


@contextmanager
def _run_server(folder: Path, *, takes_guests: bool) -> Iterator[tuple[str, str]]:
    """Run a server, and yield its address and that of its pages."""
    visitors = (
        ["--guests", str(DEMO_GUESTS), "--ws-port", "0"] if takes_guests else ["--no-house-bots", "--no-ws"]
    )
    command = ["serve", "--port", "0", "--data", str(folder), *visitors, "--log-level", "warning"]
    with _run_process(command, stdout=subprocess.PIPE) as server:
        assert server.stdout
        told = dict(_told_addresses(server.stdout))
        if not told.keys() >= {ADDRESS_LINE, PAGES_LINE}:
            raise SeatwiseError("the server did not start; its message is above")
        yield told[ADDRESS_LINE], told[PAGES_LINE]


def _told_addresses(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield what the server says of itself, up to the address of its pages."""
    for line in lines:
        for start in (ADDRESS_LINE, PAGES_LINE):
            if line.startswith(start):
                yield start, line.removeprefix(start).split(". ")[0].strip()
                if start == PAGES_LINE:
                    return


@contextmanager
def _run_bot(admin: Client, address: str, name: str, args: Namespace) -> Iterator[subprocess.Popen[str]]:
    """Run a bot as a process. It gets its token through the environment, which other users cannot read."""
    registered = admin.register_bot(name, version="1", owner=name)
    command = ["bot", DEMOS[args.game].bots[name], "--game", args.game, "--address", address]
    command += ["--queue", LADDER]
    command += ["--max-matches", str(MATCHES_AT_ONCE), "--matches", str(args.matches), "--quiet"]
    with _run_process(command, SEATWISE_TOKEN=registered.token or "") as process:
        yield process


@contextmanager
def _run_process(
    command: list[str], stdout: int | None = None, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    process = open_child("seatwise", *command, stdout=stdout, environment=variables)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(BOTS_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()


class _Ladder:
    """The demo's ladder, from its creation to its standings."""

    def __init__(self, admin: Client, game: str) -> None:
        self._admin = admin
        demo = DEMOS[game]
        limits = TimeControl(free_ms=demo.free_ms) if demo.free_ms else None
        seats = len(demo.bots)
        ladder = ladder_pb2.Ladder(name=LADDER, game=f"games/{game}", seats=seats, time_control=limits)
        admin.create_ladder(ladder)

    def play_matches(self, matches: int, players: Sequence[subprocess.Popen[str]]) -> None:
        """Wait until the bots have played the matches and stopped. Raises `SeatwiseError` after `LONGEST_DEMO_S`."""
        with table.show_progress("Playing", matches) as advance:
            done, deadline = 0, time.monotonic() + LONGEST_DEMO_S
            while any(player.poll() is None for player in players):
                if time.monotonic() > deadline:
                    text = f"only {done} of {matches} matches are over after {LONGEST_DEMO_S:.0f} s"
                    raise SeatwiseError(text)
                time.sleep(POLL_S)
                before, done = done, min(matches, self._admin.get_ladder(LADDER).results)
                advance(done - before)

    def list_matches(self) -> list[str]:
        """Return the matches that count, in their order."""
        return [each.match for each in self._admin.list_ladder_results(LADDER, page_size=1000).results]

    def read_standings(self, results: int) -> Sequence[ladder_pb2.Standing]:
        """Return the standings once they contain this many results. Raises `SeatwiseError` after `TABLE_S`."""
        deadline = time.monotonic() + TABLE_S
        while (shown := self._admin.list_standings(LADDER)).results < results:
            if time.monotonic() > deadline:
                raise SeatwiseError(f"the table contains only {shown.results} of {results} results")
            time.sleep(POLL_S)
        standings: Sequence[ladder_pb2.Standing] = shown.standings
        return standings


def _print_report(records: Sequence[str], standings: Sequence[ladder_pb2.Standing], args: Namespace) -> int:
    from seatwise_referee.verify import verify_lines

    with writing_file(args.records) as file:
        file.writelines(f"{record}\n".encode() for record in records)
    verdicts = verify_lines(record.encode() for record in records)
    faults = [verdict.fault for verdict in verdicts if verdict.fault]
    played = [json.loads(record) for record in records]
    tally = Tally(played)
    if args.json:
        ladder = [MessageToDict(each, preserving_proto_field_name=True) for each in standings]
        told = {"matches": len(records), "faults": len(faults), "bots": tally.list_rows(), "ladder": ladder}
        print(json.dumps(told))
    else:
        draw_end = KITS[args.game].draw_end
        if draw_end is not None:
            print(draw_end(played[-1], shutil.get_terminal_size().columns))
        table.show_table(f"{len(records)} matches of {args.game}", tally.COLUMNS, tally.list_cells())
        show_standings(f"The ladder after {len(records)} matches", standings)
        verified = len(records) - len(faults)
        print(f"{len(records)} records are in {args.records}; {verified} verified, {len(faults)} wrong.")
        game = "" if args.game == DEFAULT_GAME else f" --game {args.game}"
        print("For your own bot see the README, or write my_bot.py and run these commands in two terminals:")
        print(f"  {program_name()} serve")
        print(f"  {program_name()} bot my_bot.py:MyBot{game}")
    return 1 if faults else 0


@dataclass(slots=True)
class _Row:
    points: list[int] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    timeouts: int = 0
    charged: list[int] = field(default_factory=list)


class Tally:
    """Points, ranks, timeouts and charged time by bot, with the best mean of points first."""

    COLUMNS: ClassVar = ("bot", "matches", "mean points", "mean rank", "timeouts", "charged ms/move")

    def __init__(self, records: Sequence[dict[str, Any]]) -> None:
        self._rows: dict[str, _Row] = defaultdict(_Row)
        for record in records:
            self._add_record(record)

    def _add_record(self, record: dict[str, Any]) -> None:
        bots = [seat["bot"] for seat in record["seats"]]
        for seat, bot in enumerate(bots):
            self._rows[bot].points.append(record["outcome"]["points"][seat])
            self._rows[bot].ranks.append(record["result"]["ranks"][seat])
        for entry in record["entries"]:
            if entry["kind"] == "move":
                self._rows[bots[entry["seat"]]].charged.append(entry["charged_ms"])
            elif entry["kind"] == "called":
                for call in entry["calls"]:
                    self._rows[bots[call["seat"]]].charged.append(call["charged_ms"])
            elif entry["kind"] == "default" and entry["reason"] == "TIMED_OUT":
                for move in entry["moves"]:
                    self._rows[bots[move["seat"]]].timeouts += 1

    def list_rows(self) -> list[dict[str, Any]]:
        """Return a row for each bot as plain values."""
        ordered = sorted(self._rows.items(), key=lambda named: -fmean(named[1].points))
        return [
            {
                "bot": bot,
                "matches": len(row.points),
                "mean_points": fmean(row.points),
                "mean_rank": fmean(row.ranks),
                "timeouts": row.timeouts,
                "charged_ms_per_move": fmean(row.charged or [0]),
            }
            for bot, row in ordered
        ]

    def list_cells(self) -> list[list[str]]:
        """Return the texts of each row for a table with `COLUMNS`."""
        return [
            [
                row["bot"].removeprefix("bots/").replace("/versions/", " v"),
                str(row["matches"]),
                f"{row['mean_points']:.1f}",
                f"{row['mean_rank']:.2f}",
                str(row["timeouts"]),
                f"{row['charged_ms_per_move']:.2f}",
            ]
            for row in self.list_rows()
        ]


HELP = "run a demonstration: a server, a ladder, four bots, verified records"
COMMAND = Command("demo", HELP, configure, run)
