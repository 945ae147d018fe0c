"""The command `seatwise play`: plays matches without a server."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from seatwise.cli.arguments import (
    Command,
    InputFile,
    add_deck_argument,
    add_security_arguments,
    parse_bot,
    parse_count,
    parse_game_option,
    parse_output,
    program_name,
    security_of,
    use_deck_files,
)
from seatwise.defaults import ADDRESS, INTERRUPTED, TOKEN_VARIABLE
from seatwise.errors import UsageError
from seatwise.output import AnswerOutput, import_rich, show_progress

if TYPE_CHECKING:
    from seatwise.local.recorded_deal import RecordedDeal
    from seatwise.standings import PlayedMatch, Results

EPILOG = """\
Each BOT is a sample of the game, such as random, or your own class as FILE.py:CLASS. `seatwise games` lists the
games and their samples. The bots change seats from match to match. A race is played in virtual time, so a slow
machine changes nothing: an answer costs one millisecond, or the thinking time that the bot declares by
`yield Thought(ms)`. Each call of a function with a price costs this price on top. Example:

  seatwise play GAME mybot.py:MyBot random random --matches 100 --seed 7
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("game", metavar="GAME", help="name of the game; `seatwise games` lists all")
    parser.add_argument("bots", metavar="BOT", nargs="*", type=parse_bot, help="one bot for each seat")
    parser.add_argument(
        "--matches", type=parse_count, default=1, metavar="N", help="number of matches (default: 1)"
    )
    parser.add_argument(
        "--seed", metavar="SEED", help="a text or number; the same seed gives the same matches"
    )
    parser.add_argument(
        "--records", type=parse_output, metavar="FILE",
        help="write the record of each match to this file, one a line",
    )  # fmt: skip
    parser.add_argument(
        "--option", action="append", default=[], type=parse_game_option, metavar="NAME=VALUE",
        help="option of the game, such as rounds=1; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--time", choices=["priced", "measured"], default="priced",
        help="in a race, charge a bot for what it does, or for the real time that it takes (default: %(default)s)",
    )  # fmt: skip
    _add_recorded(parser)
    add_deck_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def _add_recorded(parser: ArgumentParser) -> None:
    """Add the arguments for the deal of a recorded match."""
    group = parser.add_argument_group(
        "a recorded deal again", "the bots sit in the seats in which they are named"
    )
    group.add_argument(
        "--from", dest="record", type=InputFile, metavar="RECORD",
        help="play this deal: FILE, FILE:MATCH, or matches/MATCH of the server at --address",
    )  # fmt: skip
    group.add_argument(
        "--from-move",
        type=parse_count,
        metavar="N",
        help="play the moves before number N as they are in the record",
    )
    group.add_argument("--to-move", type=parse_count, metavar="N", help="stop after move number N")
    group.add_argument("--address", default=ADDRESS, help="the server (default: %(default)s)")
    group.add_argument("--token", help=f"your own token (default: ${TOKEN_VARIABLE})")
    add_security_arguments(parser)


def _find_deal(arguments: Namespace) -> RecordedDeal | None:
    if arguments.record is None:
        if arguments.from_move or arguments.to_move:
            raise UsageError("--from-move and --to-move need --from RECORD")
        return None
    from seatwise.local.recorded_deal import read_recorded_deal

    deal = read_recorded_deal(_find_record(arguments), arguments.from_move, arguments.to_move)
    if deal.setup.game != arguments.game:
        raise UsageError(f"--from: it is a match of {deal.setup.game}, and not of {arguments.game}")
    return deal


def _find_record(arguments: Namespace) -> str | bytes:
    if arguments.record.startswith("matches/"):
        from seatwise.cli.tokens import token_at
        from seatwise.client import Client

        token = token_at(arguments.address, arguments.token)
        with Client(arguments.address, token=token, **security_of(arguments)) as client:
            return client.get_record(arguments.record)
    from seatwise.replay.record_files import find_record

    file, colon, match = arguments.record.rpartition(":")
    if not colon or Path(arguments.record).is_file():
        file, match = arguments.record, ""
    return find_record(file, match)


def run(arguments: Namespace) -> int:
    """Play, and print the table. Returns 1 if no match counts."""
    with AnswerOutput() as answers:
        return _play_series(arguments, answers)


def _play_series(arguments: Namespace, answers: AnswerOutput) -> int:
    from seatwise.local.matches import name_entrants, play
    from seatwise.standings import Results

    use_deck_files(arguments.deck)
    deal = _find_deal(arguments)
    played: list[PlayedMatch] = []
    is_interrupted, total = False, arguments.matches
    with show_progress(total, lambda done: f"{done} of {total} matches", is_quiet=arguments.json) as advance:

        def on_match(match: PlayedMatch) -> None:
            played.append(match)
            answers.raise_fault()
            advance()

        try:
            results = play(
                arguments.bots,
                game=arguments.game,
                matches=total,
                seed=arguments.seed,
                options=dict(arguments.option),
                records=arguments.records and answers.path_of(arguments.records),
                on_match=on_match,
                deal=deal,
                times=arguments.time,
            )
        except KeyboardInterrupt:
            if not played:
                raise
            is_interrupted = True
            results = Results(arguments.game, name_entrants(arguments.bots), tuple(played))
    if is_interrupted:
        print(f"interrupted after {len(played)} of {total} matches", file=sys.stderr, flush=True)
    if arguments.json:
        answers.print_line(json.dumps(results.to_json(), indent=2))
    else:
        _print_table(results, arguments, answers)
    if is_interrupted:
        return INTERRUPTED
    return 1 if all(each.void_reason for each in results) and arguments.to_move is None else 0


def _print_table(results: Results, arguments: Namespace, answers: AnswerOutput) -> None:
    rich = import_rich() if answers.stream.isatty() else None
    if rich is None:
        answers.print_line(str(results))
    else:
        heading, *rows = results.rows()
        table = rich.Table()
        for number, title in enumerate(heading):
            table.add_column(
                title, justify="right" if number else "left", overflow="fold", no_wrap=not number
            )
        for row in rows:
            table.add_row(*row)
        rich.Console(file=answers.stream).print(table)
    voided = [each.void_reason for each in results if each.void_reason]
    if voided:
        answers.print_line(
            f"{len(voided)} of {len(results)} matches were voided: {', '.join(sorted(set(voided)))}"
        )
    if arguments.records is not None:
        kept = len(results) - len(voided)
        check = "".join(f" --deck {quote(deck)}" for deck in arguments.deck)
        check = f"{program_name()} verify {quote(arguments.records)}{check}"
        answers.print_line(f"{kept} records in {arguments.records}; check them: {check}")


COMMAND = Command("play", "play matches on this machine, without a server", configure, run, epilog=EPILOG)
