"""The command `seatwise bot`: connects one bot to a server and lets it play."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from seatwise.cli.arguments import Command, add_security_arguments, parse_bot, parse_output, security_of
from seatwise.defaults import ADDRESS, TOKEN_VARIABLE
from seatwise.errors import UsageError
from seatwise.output import AnswerOutput

if TYPE_CHECKING:
    from seatwise.bot import BotFactory
    from seatwise.result import Result, Summary


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "bot",
        type=parse_bot,
        help="FILE.py:CLASS, or the name of a sample of the game, such as random; `seatwise games` lists them",
    )
    parser.add_argument("--address", default=ADDRESS, help="host:port of the server (default: %(default)s)")
    parser.add_argument(
        "--token",
        help=f"the bot's token (default: ${TOKEN_VARIABLE}; on the server's own machine the command gets one itself)",
    )
    parser.add_argument(
        "--name", help="name to register if there is no token (default: made from the class name)"
    )
    parser.add_argument("--version", default="1", help="version of the bot (default: %(default)s)")
    parser.add_argument(
        "--queue",
        action="append",
        help="queue in which to wait; may be repeated (default: the casual queue of the game)",
    )
    parser.add_argument("--no-queue", action="store_true", help="wait only for matches that name the bot")
    parser.add_argument("--game", help="game to play (default: the first one of `seatwise games`)")
    parser.add_argument(
        "--max-matches", type=int, default=4, help="maximum number of matches at once (default: %(default)s)"
    )
    parser.add_argument(
        "--matches", type=int, help="stop after this many matches (default: play until Ctrl-C)"
    )
    parser.add_argument("--front-door", action="store_true", help="reach all referees through --address")
    parser.add_argument(
        "--transport", choices=("auto", "grpc", "websocket"), default="auto",
        help="how seats are played at an address for gRPC; auto takes a WebSocket at the same host, if the extra ws is installed "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--times",
        type=parse_output,
        metavar="FILE",
        help="append the time that each answer took, by the bot's own clock, to this file",
    )
    parser.add_argument("--quiet", action="store_true", help="print only warnings and errors")
    parser.add_argument("--json", action="store_true", help="print results and summary as lines of JSON")
    add_security_arguments(parser)


def run(args: Namespace) -> int:
    """Play until told to stop. When its output cannot be written any more, the bot finishes its matches and leaves."""
    with AnswerOutput(on_fault=lambda: os.kill(os.getpid(), signal.SIGINT)) as answers:
        return _play_until_stopped(args, answers)


def _play_until_stopped(args: Namespace, answers: AnswerOutput) -> int:
    import seatwise.link  # noqa: F401  # before anything that imports grpc: it keeps its log lines out
    from seatwise.kits import DEFAULT_GAME
    from seatwise.link.question_loop import write_times_to
    from seatwise.samples import load_bot

    args.game = args.game or DEFAULT_GAME
    log_to(sys.stderr, logging.WARNING if args.quiet else logging.INFO)
    factory = load_bot(args.bot, args.game)
    with ExitStack() as stack:
        if args.times is not None:
            try:
                stack.enter_context(write_times_to(Path(args.times)))
            except OSError as error:
                raise UsageError(f"--times {args.times}: {error.strerror}") from None
        summary = _play_bot(args, factory, answers)
    answers.raise_fault()
    if args.json:
        answers.print_line(json.dumps({"summary": summary.to_json()}))
    return 1 if summary.left else 0


def _play_bot(args: Namespace, factory: BotFactory, answers: AnswerOutput) -> Summary:
    from seatwise.remote import run as play

    return play(
        factory,
        game=args.game,
        address=args.address,
        token=args.token or os.environ.get(TOKEN_VARIABLE) or _own_token(args),
        queues=() if args.no_queue else args.queue,
        max_matches=args.max_matches,
        matches=args.matches,
        on_result=partial(_print_json, answers) if args.json else None,
        front_door=args.front_door,
        transport=args.transport,
        **security_of(args),
    )


def _own_token(args: Namespace) -> str:
    from seatwise.cli.tokens import slug_of, token_for
    from seatwise.samples import bot_name

    return token_for(
        args.address, args.name or slug_of(bot_name(args.bot)), args.version, **security_of(args)
    )


def _print_json(answers: AnswerOutput, result: Result) -> None:
    own = result.seat
    told: dict[str, Any] = {"match": result.match, "seat": own, "void_reason": result.void_reason or None}
    if not result.is_void:
        told |= {
            "points": list(result.points),
            "ranks": list(result.ranks),
            "endings": [str(ending) for ending in result.endings],
        }
    try:
        answers.print_line(json.dumps(told))
    except OSError as error:  # nothing reads the output any more, as after `| head -1`, or the disk is full
        logging.getLogger("seatwise").warning("the results cannot be written any more (%s)", error.strerror)
        answers.note_fault(error)


# Messages, line by line


class _Lines(logging.Formatter):
    """Plain lines. On a terminal each begins with the time, and warnings and errors have a colour."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__("%(asctime)s %(message)s" if is_terminal else "%(message)s", "%H:%M:%S")
        self._has_colour = is_terminal and "NO_COLOR" not in os.environ

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        if not self._has_colour or record.levelno < logging.WARNING:
            return line
        return f"\x1b[{31 if record.levelno >= logging.ERROR else 33}m{line}\x1b[0m"


def log_to(out: TextIO, level: int) -> None:
    """Log the events of the link to this file."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(_Lines(out.isatty()))
    log = logging.getLogger("seatwise")
    log.handlers[:] = [handler]
    log.setLevel(level)


COMMAND = Command("bot", "connect a bot to a server and let it play", configure, run)
