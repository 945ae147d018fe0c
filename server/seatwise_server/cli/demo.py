"""`seatwise demo`: a server, four bots as processes, some matches, and their verified records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from seatwise.cli.command import Command
from seatwise.client import Client
from seatwise.v1 import match_pb2
from seatwise.v1.time_control_pb2 import TimeControl
from seatwise_server.cli import show, table
from seatwise_server.cli.tally import Tally

BOTS = {
    "ugo": {"random": "random", "greedy": "greedy", "greedy-twin": "greedy", "counting": "counting"},
    "ubongo": {
        "random": "random",
        "random-twin": "random",
        "solver": "solver",
        "solver-twin": "solver",
    },
}
"""The players of the demo by game and name, and which sample each is."""
LIMITS = {"ubongo": TimeControl(free_ms={"build": 10_000})}
"""Where the house's own limits would take too long to watch."""
LONGEST_S = 300.0
POLL_S = 0.1
END_S = 10.0

OVER = (match_pb2.Match.STATE_FINISHED, match_pb2.Match.STATE_VOIDED)


def configure(parser: ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("--game", default="ugo", choices=list(BOTS), help="what is played (default: ugo)")
    parser.add_argument("--matches", type=int, default=24, help="how many matches (default: %(default)s)")
    parser.add_argument(
        "--records",
        type=Path,
        default=Path("demo-records.jsonl"),
        help="where they go (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print the table as JSON")


def run(args: Namespace) -> int:
    """Leaves nothing running, whatever happens."""
    if args.matches < 1:
        print("seatwise demo: --matches must be 1 or more", file=sys.stderr)
        return 2
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seatwise-demo-")))
        address = stack.enter_context(_server(folder))
        admin = stack.enter_context(Client(address, token=(folder / "admin.token").read_text().strip()))
        players = [stack.enter_context(_bot(admin, address, name, args)) for name in BOTS[args.game]]
        names = _play(admin, players, args)
        records = [admin.get_record(name) for name in names]
    return _report(records, args)


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    command = ["serve", "--port", "0", "--data", str(folder), "--no-house-bots", "--log-level", "warning"]
    with _process(command, stdout=subprocess.PIPE) as server:
        assert server.stdout
        line = server.stdout.readline()
        if "listens on " not in line:
            raise RuntimeError("the server did not start; what it said is above")
        yield line.partition("listens on ")[2].split(". ")[0]


@contextmanager
def _bot(admin: Client, address: str, name: str, args: Namespace) -> Iterator[str]:
    """A bot as a process of its own; it learns its token from the environment, where nobody can list it."""
    registered = admin.register_bot(name, version="1", owner="demo")
    command = [
        "bot",
        BOTS[args.game][name],
        "--game",
        args.game,
        "--address",
        address,
        "--no-queue",
        "--max-matches",
        str(args.matches),
        "--quiet",
    ]
    with _process(command, SEATWISE_TOKEN=registered.token or ""):
        yield registered.bot


@contextmanager
def _process(
    command: list[str], stdout: int | None = None, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "seatwise", *command],
        stdout=stdout, stdin=subprocess.DEVNULL, text=True, env={**os.environ, **variables},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _play(admin: Client, players: list[str], args: Namespace) -> list[str]:
    """All matches at once, the seats rotated; returns their names when they are over."""
    names = []
    for number in range(args.matches):
        turn = number % len(players)
        bots = [*players[turn:], *players[:turn]]
        match = admin.create_match(f"games/{args.game}", bots=bots, time_control=LIMITS.get(args.game))
        names.append(match.name)
    with table.progress("Playing", len(names)) as advance:
        _await_end(admin, names, advance)
    return names


def _await_end(admin: Client, names: list[str], advance: table.Advance) -> None:
    open_matches, deadline = set(names), time.monotonic() + LONGEST_S
    while open_matches:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(open_matches)} matches are not over after {LONGEST_S:.0f} s")
        over = {
            match.name for match in admin.list_matches(page_size=1000) if match.state in OVER
        } & open_matches
        open_matches -= over
        advance(len(over))
        time.sleep(POLL_S)


def _report(records: list[str], args: Namespace) -> int:
    from seatwise_referee.verify import verify_lines

    args.records.write_text("".join(f"{record}\n" for record in records))
    faults = [
        verdict.fault for verdict in verify_lines(record.encode() for record in records) if verdict.fault
    ]
    played = [json.loads(record) for record in records]
    tally = Tally(played)
    if args.json:
        print(json.dumps({"matches": len(records), "faults": len(faults), "bots": tally.rows()}))
    else:
        if args.game == "ubongo":
            print(show.final_layouts(played[-1]))
        table.show(f"{len(records)} matches of {args.game}", tally.COLUMNS, tally.cells())
        print(
            f"{len(records)} records are in {args.records}; {len(records) - len(faults)} verified, {len(faults)} wrong."
        )
        print("Your own bot: see the README, or write my_bot.py and run")
        print("  seatwise serve                        # in one terminal")
        game = "" if args.game == "ugo" else f" --game {args.game}"
        print(f"  {'seatwise bot my_bot.py:MyBot' + game:37} # in another")
    return 1 if faults else 0


COMMAND = Command("demo", "show it all: a server, four bots, matches, verified records", configure, run)
