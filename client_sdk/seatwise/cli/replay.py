"""The command `seatwise replay`: shows a match step by step, in a terminal or as a page."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from seatwise.cli.arguments import (
    Command,
    InputFile,
    add_deck_argument,
    parse_count_or_zero,
    parse_output,
    use_deck_files,
)
from seatwise.errors import UsageError
from seatwise.output import writing_file

if TYPE_CHECKING:
    from seatwise.replay import MatchReplay, Viewpoint

EPILOG = """\
FILE holds one record a line, as `seatwise play --records FILE` writes it, or it is a season bundle; - reads
standard input. MATCH is the name of a match, or enough of its beginning.
In a terminal, keys step through the match. Elsewhere the command prints a line for each step and the last position,
or with --at the position after that step.
With --seat, what the other seats held is not shown, and neither is how long they thought.
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=InputFile, metavar="FILE", help="file of records, or a season bundle")
    parser.add_argument("match", metavar="MATCH", nargs="?", default="", help="match, if FILE has several")
    parser.add_argument("--at", type=parse_count_or_zero, metavar="STEP", help="step to begin with, from 0")
    parser.add_argument(
        "--seat", metavar="SEAT", help="number of a seat, or its bot: show only what that seat knew"
    )
    parser.add_argument(
        "--hint", action="store_true", help="say what the strongest sample bot would play in each position"
    )
    parser.add_argument(
        "--html", type=parse_output, metavar="OUT",
        help="write the match as a page to this file, and show nothing",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the positions as JSON")
    add_deck_argument(parser)


def run(arguments: Namespace) -> int:
    """Show the match. Returns 0."""
    from seatwise.replay import ALL_OPEN, read_replay
    from seatwise.replay.record_files import find_record

    use_deck_files(arguments.deck)
    line = find_record(arguments.file, arguments.match)
    open_replay = read_replay(line)
    viewpoint = _find_seat(open_replay, arguments.seat) if arguments.seat else ALL_OPEN
    _check_step(open_replay, arguments.at)
    if arguments.hint:
        print("asking the sample bot about each position", file=sys.stderr, flush=True)

    def read(seen_from: Viewpoint) -> MatchReplay:
        return read_replay(line, seen_from, has_hints=arguments.hint)

    replay = open_replay if viewpoint == ALL_OPEN and not arguments.hint else read(viewpoint)
    if arguments.html:
        return _write_page(replay, arguments.html)
    if arguments.json:
        return _print_json(replay, arguments.at)
    if sys.stdin.isatty() and sys.stdout.isatty() and arguments.file != "-":
        from seatwise.replay.text import Stepper, run_stepper

        run_stepper(Stepper(read, viewpoint, arguments.at or 0))
        return 0
    return _print_text(replay, arguments.at)


def _find_seat(replay: MatchReplay, text: str) -> Viewpoint:
    """Return the seat of that number, or of the bot of that name."""
    names = [*map(str, range(len(replay.bots)))]
    for known in (names, list(replay.names), list(replay.bots)):
        if known.count(text) == 1:
            return known.index(text)
    seats = ", ".join(f"{seat} ({name})" for seat, name in enumerate(replay.names))
    raise UsageError(f"--seat {text}: there is no such seat; the seats are {seats}")


def _check_step(replay: MatchReplay, step: int | None) -> None:
    last = len(replay.frames) - 1
    if step is not None and step > last:
        raise UsageError(f"--at {step}: the match has the steps 0 to {last}")


def _write_page(replay: MatchReplay, path: str) -> int:
    from seatwise.replay.page import render_page

    page = render_page(replay).encode()
    try:
        with writing_file(path) as file:
            file.write(page)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    last = len(replay.frames) - 1
    print(
        f"{path}: {replay.match} with {last} steps. Open it in a browser; {path}#step={last // 2} is a moment"
    )
    return 0


def _print_json(replay: MatchReplay, step: int | None) -> int:
    told = replay.to_json()
    if step is not None:
        told["frames"] = [told["frames"][step]]
    print(json.dumps(told, indent=1))
    return 0


def _print_text(replay: MatchReplay, step: int | None) -> int:
    from seatwise.replay.text import draw_step, list_steps

    if step is None:
        print("\n".join(list_steps(replay)), end="\n\n")
    print(draw_step(replay, len(replay.frames) - 1 if step is None else step, get_terminal_size().columns))
    return 0


COMMAND = Command(
    "replay", "show a match step by step, in a terminal or as a page", configure, run, epilog=EPILOG
)
