"""What one bot was shown and told, written down before it could act on it, and safe from its own death."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]
"""One thing that happened: `at` (seconds on the clock that all processes of a machine share), `what`, and more."""


class History:
    """A file to which lines are only ever added; each has reached the disk when `note` returns."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._mend()

    def note(self, lines: Iterable[Line]) -> None:
        """Writes the lines down, all of them or, if the process dies meanwhile, some."""
        at = time.monotonic()
        text = b"".join(json.dumps({"at": at, **line}).encode() + b"\n" for line in lines)
        if text:
            os.write(self._file, text)
            os.fsync(self._file)

    def _mend(self) -> None:
        """What a kill has torn stays a line of its own."""
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")


def read(path: Path) -> Iterator[Line]:
    """The lines in their order; one that a kill has torn is left out."""
    for text in path.read_bytes().splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        yield line
