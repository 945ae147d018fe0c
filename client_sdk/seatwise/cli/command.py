"""The type of a command of `seatwise`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


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

    mixes_options: bool = False
    """Whether options may come between the other arguments, as in FILE --hint MATCH."""

    shows_answers: bool = False
    """Whether it shows what a server answers. Such a server may be newer, broken or hostile."""


def program_name() -> str:
    """Return `seatwise` as it can be typed here: after `make demo` it is not on the PATH."""
    from shlex import quote
    from shutil import which

    own = Path(sys.argv[0])
    return "seatwise" if own.name != "seatwise" or which("seatwise") else quote(str(own))
