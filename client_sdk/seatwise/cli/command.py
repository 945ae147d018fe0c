"""What a command of `seatwise` is."""

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
    """As typed after `seatwise`."""

    help: str
    """One line."""

    configure: Callable[[ArgumentParser], None]
    """Adds the arguments."""

    run: Callable[[Namespace], int]
    """Does it; the exit code: 0 fine, 1 failed, 2 usage."""


def program_name() -> str:
    """`seatwise`, as it can be typed here: after `make demo` it is not on the PATH."""
    from shlex import quote
    from shutil import which

    own = Path(sys.argv[0])
    return "seatwise" if own.name != "seatwise" or which("seatwise") else quote(str(own))
