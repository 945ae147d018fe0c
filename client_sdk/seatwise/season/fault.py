"""The faults of season bundles."""

from __future__ import annotations

from collections.abc import Collection

from seatwise_referee.verify import escape_text


class BadSeason(ValueError):  # it is the verdict, not a failure of the program
    """The first thing that is wrong; the text names the file in the bundle and the line, and is safe to print."""

    def __init__(self, text: str) -> None:
        super().__init__(escape_text(text))


class UncheckedSeason(BadSeason):
    """The season could not be checked, because its game is not installed here; the text says what to install."""


def fault_at(file: str, line: int, what: str) -> BadSeason:
    """Return the fault that names the file, the line, counted from 1, and what is wrong with it."""
    return BadSeason(f"{file}: line {line}: {what}")


def check_keys(value: Collection[str], known: Collection[str], where: str) -> None:
    """Check that all keys are known: one that is not might change the meaning of the others.

    Args:
        value: The object, or its keys.
        known: The keys that it may have.
        where: The file, and perhaps the line.

    Raises:
        BadSeason: This version does not know one of the keys.
    """
    for key in value:
        if key not in known:
            raise BadSeason(f"{where}: the key {key!r:.60} does not belong there")
