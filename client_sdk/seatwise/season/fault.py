"""What is wrong with a season bundle."""

from __future__ import annotations


class BadSeason(ValueError):  # it is the verdict, not a failure of the program
    """The first thing that is wrong; the text names the file in the bundle and the line."""


def at(file: str, line: int, what: str) -> BadSeason:
    """That thing is wrong with that line, counted from 1."""
    return BadSeason(f"{file}: line {line}: {what}")
