"""Commands, and the options that they share."""

from __future__ import annotations

import math
import os
import re
import socket
import sys
from argparse import PARSER, REMAINDER, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NoReturn

from seatwise.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatwise.link.security import SecurityOptions
    from seatwise.units import UnitOptions


@dataclass(frozen=True, slots=True)
class Command:
    """One command. Its module imports what it needs only when it runs."""

    name: str
    """The name, as typed after `seatwise`."""

    help: str
    """The help text, one line."""

    configure: Callable[[ArgumentParser], None]
    """Add the arguments to the parser."""

    run: Callable[[Namespace], int]
    """Run the command, and return the exit code: 0 success, 1 failure, 2 wrong usage."""

    shows_answers: bool = False
    """Whether it shows what a server answers. Such a server may be newer, broken or hostile."""

    epilog: str = ""
    """Text below the options in its help, in lines."""


def program_name() -> str:
    """Return `seatwise` as it can be typed here: after `make demo` it is not on the PATH."""
    from shlex import quote
    from shutil import which

    own = Path(sys.argv[0])
    return "seatwise" if own.name != "seatwise" or which("seatwise") else quote(str(own))


LAST_PORT = 65535
COMMON_OPTIONS = ("address", "token", "json")
MOST_JOBS = 256
"""The most workers on this machine."""
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
"""The letters behind a size in bytes."""


class CommandParser(ArgumentParser):
    """A parser that says what is wrong in one sentence, and where the options are. Its verbs have such parsers, too.

    Options may come between the other arguments, as in FILE --hint MATCH.
    """

    _is_mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse the arguments. The parser of a verb refuses those that it does not know."""
        if self._is_mixing or any(each.nargs in (PARSER, REMAINDER) for each in self._actions):
            return super().parse_known_args(args, namespace)
        self._order_options()
        self._is_mixing = True
        try:
            found, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_mixing = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, []

    def _order_options(self) -> None:
        """Let help begin with the command's own options, before those that most commands have."""
        common = {id(each) for group in self._action_groups[2:] for each in group._group_actions}
        common |= {id(each) for each in self._actions if each.dest in COMMON_OPTIONS}
        for actions in (self._actions, self._optionals._group_actions):
            actions.sort(key=lambda each: id(each) in common)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        print(f"{self.prog}: {message}\nSee {self.prog} --help", file=sys.stderr)
        raise SystemExit(2)


class InputFile(str):
    """A file that the command reads: FILE, or FILE:NAME for a part of it. - is standard input."""

    __slots__ = ()


class OutputFile(str):
    """A file that the command writes, or a folder in which it writes files of these names."""

    names: tuple[str, ...] = ()


def parse_bot(text: str) -> str:
    """Return FILE.py:CLASS as an input. The name of a sample is none."""
    return InputFile(text) if ":" in text else text


def parse_output(text: str) -> OutputFile:
    """Return a file to write."""
    if text == "-":
        raise ArgumentTypeError("the answers go to standard output; name a file, such as /dev/stdout")
    return OutputFile(text)


def output_folder_parser(*names: str) -> Callable[[str], OutputFile]:
    """Return a parser of a folder in which files of these names are written."""

    def parse(text: str) -> OutputFile:
        folder = OutputFile(text)
        folder.names = names
        return folder

    return parse


def refuse_overwriting(args: Namespace) -> None:
    """Raise `UsageError` if the command would write to a file that it reads, by whatever name. No file is opened."""
    given = [
        (name, each)
        for name, value in vars(args).items()
        for each in (value if isinstance(value, list) else [value])
    ]
    inputs = [
        (each, read) for _, each in given if isinstance(each, InputFile) for read in _states_of_input(each)
    ]
    if hasattr(args, "tls_ca"):
        from seatwise.link.security import CA_VARIABLE, CERT_VARIABLE, KEY_VARIABLE

        named = [os.environ.get(variable, "") for variable in (CA_VARIABLE, CERT_VARIABLE, KEY_VARIABLE)]
        inputs += [(InputFile(each), read) for each in named for read in _states_of_input(each)]
    for name, each in given:
        for path in _paths_of_output(each) if isinstance(each, OutputFile) else ():
            written = _state_of_file(path)
            source = next(
                (source for source, read in inputs if written and os.path.samestat(read, written)), ""
            )
            if written and os.path.realpath(path).endswith(".py"):  # a bot may import it
                source = source or path
            if source:
                raise UsageError(
                    f"--{name.replace('_', '-')} {each}: it would overwrite a file that this command reads ({source}); "
                    "nothing was written. Name another file"
                )


def _states_of_input(text: str) -> Iterator[os.stat_result]:
    words = [text, *re.split(r"[\s=;|&'\"]+", text)]  # doctor may be given a command for a shell
    for path in (0,) if text == "-" else [part for word in words for part in (word, word.rpartition(":")[0])]:
        if state := _state_of_file(path):
            yield state


def _paths_of_output(output: OutputFile) -> list[str]:
    return [os.path.join(output, name) for name in output.names] or [output]


def _state_of_file(path: str | int) -> os.stat_result | None:
    """Return what identifies a file, whatever links lead to it; `None` if there is none that could be lost."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return state if S_ISREG(state.st_mode) else None


def parse_count(text: str, least: int = 1) -> int:
    """Return a number of things: a whole number of at least `least`."""
    if not _is_whole(text) or not least <= int(text) <= 10**9:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return int(text)


parse_count_or_zero = partial(parse_count, least=0)


def parse_units(text: str) -> range:
    """Return the units START:END, without the last one."""
    start, colon, end = text.partition(":")
    if not colon or not _is_whole(start) or not _is_whole(end) or not int(start) < int(end) <= 10**9:
        raise ArgumentTypeError(f"{text!r} is not START:END, as in 0:500")
    return range(int(start), int(end))


def _parse_jobs(text: str) -> int:
    return 0 if text == "auto" else min(MOST_JOBS, parse_count(text))


def add_unit_arguments(parser: ArgumentParser, units: str, jobs: int = 0) -> None:
    """Add the options of a command whose work is done in units, which users know by this name, usually by so many workers."""
    parser.set_defaults(usual_jobs=jobs)
    parser.add_argument(
        "--jobs", type=_parse_jobs, metavar="N",
        help=f"number of workers, or `auto` for one on each core (default: {jobs or 'auto'})",
    )  # fmt: skip
    parser.add_argument(
        "--on", default="", metavar="WHERE",
        help="work on a Ray cluster: ray, or its address (default: processes of this machine)",
    )  # fmt: skip
    parser.add_argument(
        "--units", type=parse_units, metavar="START:END", help=f"do only these {units}, from 0, for --merge"
    )
    parser.add_argument(
        "--out", type=parse_output, metavar="FILE",
        help="write each answer to this file; the same command goes on from there",
    )  # fmt: skip
    parser.add_argument(
        "--merge",
        type=InputFile,
        nargs="+",
        metavar="FILE",
        help="put together what others wrote with --units and --out",
    )


def read_unit_options(arguments: Namespace) -> UnitOptions:
    """Return the options of units. Raises `UsageError` for some that do not go together."""
    from seatwise.units import UnitOptions

    if arguments.units and not arguments.out:
        raise UsageError("--units needs --out: where the answers go")
    if arguments.merge and (arguments.out or arguments.on):
        raise UsageError("--merge reads answers: leave --units, --out and --on out")
    jobs = arguments.jobs
    if jobs is None:
        jobs = 0 if arguments.on else arguments.usual_jobs
    return UnitOptions(arguments.on, jobs, arguments.units, arguments.out or "", tuple(arguments.merge or ()))


def parse_span(text: str) -> float:
    """Return a span of time in the unit of the option: a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def parse_time(text: str) -> datetime:
    """Return a time: an ISO date with or without a time of day, local unless it has a time zone, or a span back from now."""
    ago = re.fullmatch(r"(\d{1,6})([mhd])", text)
    try:
        if ago:
            unit = {"m": "minutes", "h": "hours", "d": "days"}[ago[2]]
            return datetime.now().astimezone() - timedelta(**{unit: int(ago[1])})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"{text!r} is not a time, such as 2026-11-22, 2026-11-22T18:00 or 12h"
        ) from None


def parse_size(text: str) -> int:
    """Return a number of bytes: a whole number, with K, M or G for KiB, MiB or GiB."""
    parts = re.fullmatch(r"([0-9]{1,11})([KMG]?)", text)
    if parts is None:
        raise ArgumentTypeError(f"{text!r} is not a size, such as 900M or 2G")
    return int(parts[1]) * UNITS[parts[2]]


def parse_port(text: str) -> int:
    """Return a port. gRPC would read 65537 as 1."""
    if not _is_whole(text) or int(text) > LAST_PORT:
        raise ArgumentTypeError(f"{text!r} is not a port: give a whole number from 0 to {LAST_PORT}")
    return int(text)


def parse_host(text: str) -> str:
    """Return a host of this machine to listen on: a name, or an address, with brackets if it is one of IPv6."""
    bare = text.removeprefix("[").removesuffix("]")
    try:
        is_ipv6 = ip_address(bare.partition("%")[0]).version == 6
    except ValueError:
        bare, is_ipv6 = text, False
        if not re.fullmatch(r"[A-Za-z0-9._-]+", text):
            raise ArgumentTypeError(f"{text!r} is no host, such as 127.0.0.1, localhost or ::1") from None
    try:
        socket.getaddrinfo(bare, None)  # an address of IPv6 may name a network card that is not there
    except OSError:
        raise ArgumentTypeError(
            f"this machine knows no host {text!r}; 0.0.0.0 listens on all its addresses"
        ) from None
    return f"[{bare}]" if is_ipv6 else bare


def parse_address(text: str) -> str:
    """Return HOST:PORT, with or without https:// or http://, as other machines are told it."""
    if not re.fullmatch(r"(https?://)?([^\s:/]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}", text):
        raise ArgumentTypeError(f"{text!r} is not HOST:PORT, such as referee-1.internal:7433")
    return text


def parse_ws_address(text: str) -> str:
    """Return the address of a WebSocket port, as other machines are told it. It may have a path, for a proxy."""
    if not re.fullmatch(r"wss?://([^\s:/?#]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?(/[^\s?#]*)?", text):
        raise ArgumentTypeError(
            f"{text!r} is not ws://HOST:PORT or wss://HOST:PORT, such as wss://play.example.org"
        )
    return text.rstrip("/")


def parse_origin(text: str) -> str:
    """Return the origin of a web page, as browsers send it."""
    if not re.fullmatch(r"https?://([^\s:/?#;,'\"]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?", text):
        raise ArgumentTypeError(f"{text!r} is no origin, such as https://example.org")
    return text.lower()


def parse_game_option(text: str) -> tuple[str, int | str]:
    """Return the name and the value of an option of a game."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as rounds=1")
    return name, int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value


def name_parser(collection: str) -> Callable[[str], str]:
    """Return a parser of the names of resources in this collection. The last part of a name is enough."""
    return lambda text: text if text.startswith(f"{collection}/") else f"{collection}/{text}"


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def add_security_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("encryption")
    group.add_argument(
        "--insecure", action="store_true", default=None,
        help="let the token travel in clear to another machine (default: $SEATWISE_INSECURE)",
    )  # fmt: skip
    group.add_argument(
        "--tls-pin", action="append", metavar="PIN",
        help="fingerprint of the server's key, as `seatwise serve` prints it; may be repeated (default: $SEATWISE_TLS_PIN)",
    )  # fmt: skip
    group.add_argument(
        "--tls-ca",
        type=InputFile,
        metavar="FILE",
        help="the CAs to trust, as PEM (default: $SEATWISE_TLS_CA, or the public ones)",
    )
    group.add_argument(
        "--tls-cert",
        type=InputFile,
        metavar="FILE",
        help="a client certificate, as PEM (default: $SEATWISE_TLS_CERT)",
    )
    group.add_argument(
        "--tls-key", type=InputFile, metavar="FILE", help="its key, as PEM (default: $SEATWISE_TLS_KEY)"
    )


def security_of(args: Namespace) -> SecurityOptions:
    """Return the options of the encryption that the command line has."""
    return {
        "insecure": args.insecure,
        "tls_pin": args.tls_pin,
        "tls_ca": args.tls_ca,
        "tls_cert": args.tls_cert,
        "tls_key": args.tls_key,
    }


def add_deck_argument(parser: ArgumentParser) -> None:
    """Add the argument `deck`, a list."""
    parser.add_argument(
        "--deck", action="append", default=[], type=InputFile, metavar="FILE",
        help="file with your own deck, for a game with decks; may be repeated. A match uses the deck that its option `deck` names",
    )  # fmt: skip


def use_deck_files(files: Sequence[str], default_deck: str = "") -> None:
    """See `seatwise.kits.use_deck_files`. Without files and a default no game is loaded."""
    if files or default_deck:
        from seatwise import kits

        kits.use_deck_files(files, default_deck)
