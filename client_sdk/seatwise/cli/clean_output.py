"""Keeps the control characters of a server out of a terminal, which would obey them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO, cast

_HARMLESS = "\n\t"


class CleanOutput:
    """A stream of text that writes a question mark for each control character, except line feeds and tabs."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        """The stream below, for a program that writes colours itself and cleans its own texts."""

    def write(self, text: str) -> int:
        """Write the text."""
        if not text.isprintable():
            text = "".join(letter if letter.isprintable() or letter in _HARMLESS else "?" for letter in text)
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def cleaning_output() -> Iterator[None]:
    """Clean all that is printed as long as the context lasts."""
    with redirect_stdout(cast("TextIO", CleanOutput(sys.stdout))):
        yield


def uncleaned_output() -> TextIO:
    """Return the standard output as it is without `cleaning_output`."""
    output: Any = sys.stdout
    return output.stream if isinstance(output, CleanOutput) else output
