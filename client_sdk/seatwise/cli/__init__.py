"""The program `seatwise`: it runs the command that the user has typed, and turns each error into one message."""

from __future__ import annotations

import sys
from errno import ENOSPC
from importlib import import_module
from typing import TYPE_CHECKING

from seatwise.defaults import FAILED, INTERRUPTED, USAGE
from seatwise.errors import SeatwiseError, UnavailableError, UsageError
from seatwise.output import cleaning_output, open_standard_streams, silence_output

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from importlib.metadata import EntryPoint

    from seatwise.cli.arguments import Command

SDK_COMMANDS = (
    "new", "play", "compare", "doctor", "bot", "mcp", "verify", "replay", "games", "check-game",
)  # fmt: skip
"""The commands of this package, each in the module of its name. All others come from entry points."""

COMMAND_HELP = {
    "new": "write a new bot, its test and a Makefile",
    "play": "play matches on this machine, without a server",
    "compare": "compare two versions of a bot on the same deals",
    "doctor": "check whether a bot in any language speaks the protocol",
    "bot": "connect a bot to a server and let it play",
    "mcp": "let a language model play a seat through MCP",
    "verify": "check the records of matches",
    "replay": "show a match step by step, in a terminal or as a page",
    "games": "list the games that are installed here",
    "check-game": "check a game from outside, as its author should",
    "serve": "run a server",
    "config": "show the settings of a server, and where they are from",
    "demo": "run a demonstration: a server, a ladder, four bots, verified records",
    "bots": "register, list and manage bots",
    "match": "create, list, show and watch the matches of a server",
    "ladder": "create ladders and show their standings",
    "league": "run a league from a file and publish its table",
    "ctl": "manage the referees, matches and leases of a server",
}
"""The commands with their help texts. They stand here so that `seatwise --help` need not import all commands."""

ENTRY_POINTS = "seatwise.commands"
SERVER_EXTRA = "pip install '.[server,embedded]' in a clone of the repository"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    open_standard_streams()
    try:
        code = _dispatch_command(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of the output has ended, as `head` does
        silence_output()
        code = FAILED
    except OSError as error:  # a disk that is full, a folder that is gone
        command = "".join(f" {first}" for first in arguments[:1] if first in COMMAND_HELP)
        file = error.filename or ("standard output" if error.errno == ENOSPC else "")
        where = f"{file}: " if file else ""
        why = error.strerror or str(error) or "a process did not answer in time; the machine may be very busy"
        code = _print_error(f"seatwise{command}: {where}{why}", FAILED)
    return _flush_output(code)


def _dispatch_command(arguments: list[str]) -> int:
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help", "help"):
        print(_help_text())
        return 0
    if first in ("-V", "--version", "version"):
        from importlib.metadata import version

        print(f"seatwise {version('seatwise')}")
        return 0
    if not first:
        print(_help_text(), file=sys.stderr)
        return USAGE
    if first.startswith("-"):
        return _print_error(f"seatwise: there is no option {first}; see seatwise --help", USAGE)
    return _run_named(first, arguments[1:])


def _run_named(name: str, arguments: list[str]) -> int:
    try:
        command = _find_command(name)
        if command is None:
            return _print_error(_unknown_command(name), USAGE)
        return _call_command(command, arguments)
    except ModuleNotFoundError as error:
        if name in SDK_COMMANDS or (error.name or "").startswith("seatwise"):
            raise
        return _print_error(f"seatwise {name} needs the server extra: {SERVER_EXTRA}", USAGE)


def _call_command(command: Command, arguments: list[str]) -> int:
    from argparse import HelpFormatter, RawDescriptionHelpFormatter

    from seatwise.cli.arguments import CommandParser, refuse_overwriting

    form = RawDescriptionHelpFormatter if command.epilog else HelpFormatter
    name, sentence = f"seatwise {command.name}", f"{command.help[:1].upper()}{command.help[1:]}."
    parser = CommandParser(name, description=sentence, epilog=command.epilog or None, formatter_class=form)
    command.configure(parser)
    try:
        args = parser.parse_args(arguments)
        refuse_overwriting(args)
        return _run_command(command, args)
    except SystemExit as end:  # argparse has said what was wrong
        return end.code if isinstance(end.code, int) else USAGE
    except SeatwiseError as error:
        code = USAGE if isinstance(error, UsageError) else FAILED
        return _print_error(f"seatwise {command.name}: {_describe_error(error, args)}", code)


def _run_command(command: Command, args: Namespace) -> int:
    """Run the command. An answer of a server that cannot be shown ends it with a message, not with a traceback."""
    if not command.shows_answers:
        return command.run(args)
    try:
        with cleaning_output():
            return command.run(args)
    except (SeatwiseError, OSError, ImportError):
        raise
    except Exception as error:
        told = f"the server has sent what this version of seatwise cannot show ({error!r:.200}). Is the server newer?"
        return _print_error(f"seatwise {command.name}: {told} If not, tell its operator", FAILED)


def _describe_error(error: SeatwiseError, args: Namespace) -> str:
    """Return the message of an error. If no server answered, it names the address, and says what to do."""
    option = next((each for each in ("address", "server") if getattr(args, each, "")), "")
    address = getattr(args, option, "")
    if not address or error.reason or not isinstance(error, UnavailableError):
        return str(error)
    return (
        f"no server answers at {address} ({error}). Is `seatwise serve` running there? "
        f"If it runs elsewhere, give its address with --{option} HOST:PORT"
    )


def _find_command(name: str) -> Command | None:
    """Return the command of that name; `None` if there is none."""
    if name in SDK_COMMANDS:
        own: Command = import_module(f"seatwise.cli.{name.replace('-', '_')}").COMMAND
        return own
    for point in _entry_points():
        if point.name == name:
            found: Command = point.load()
            return found
    return None


def _entry_points() -> Sequence[EntryPoint]:
    from importlib.metadata import entry_points

    return list(entry_points(group=ENTRY_POINTS))


# Messages


def _help_text() -> str:
    width = max(map(len, COMMAND_HELP))
    commands = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMAND_HELP.items())
    return (
        "usage: seatwise COMMAND ...\n\nA referee for bots that compete in games with hidden cards.\n\n"
        f"{commands}\n\n"
        "`seatwise COMMAND --help` lists its options. Exit codes: 0 success, 1 failure, 2 wrong usage."
    )


def _unknown_command(name: str) -> str:
    from difflib import get_close_matches

    names = list(dict.fromkeys([*COMMAND_HELP, *(point.name for point in _entry_points())]))
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
    return f"seatwise: there is no command {name}; {hint}"


def _print_error(text: str, code: int) -> int:
    """Print a message. Control characters are escaped, because a file or a server may have put them into it."""
    shown = (each if each.isprintable() or each == "\n" else f"\\x{ord(each):02x}" for each in text)
    print("".join(shown), file=sys.stderr)
    return code


def _flush_output(code: int) -> int:
    """Return the code, or `FAILED` if the last output could not be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        silence_output()
        if not isinstance(error, BrokenPipeError):
            _print_error(f"seatwise: standard output: {error.strerror}", FAILED)
        return FAILED
    return code
