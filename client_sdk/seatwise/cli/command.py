"""What a command of `seatwise` is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass


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
