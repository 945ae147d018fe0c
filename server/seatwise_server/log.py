"""Logging: one line for each event, as JSON unless standard error is a terminal."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any, Final, TextIO

import structlog

from seatwise_server.tracing import TRACING

FILE: Final = "server.log"
"""In the data folder: the log of a server in the background of a terminal."""

_COLOUR_CODES: Final = re.compile("\x1b\\[[0-9;]*m")

# A shell without job control starts background processes in its own process group, with SIGINT ignored.
_IGNORES_INTERRUPTS: Final = signal.getsignal(signal.SIGINT) is signal.SIG_IGN


class _LineWriter:
    """Writes each line by one call of the system, so that lines of two processes on one pipe or file are not mixed.

    Write errors are ignored: a log reader that has gone must not stop a match.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._descriptor = _descriptor_of(stream)

    def write(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a broken pipe, a full disk; a closed file
            if self._descriptor is None:
                self._stream.write(line)
                return
            rest = line.encode("utf-8", "backslashreplace")
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def _descriptor_of(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (AttributeError, OSError, ValueError):  # a stream in memory, or one that chooses where it writes
        return None


class _Foreground:
    """A terminal while this process is in the foreground, and a file while it is in the background.

    So `seatwise serve &` does not write between the lines of what else runs on that terminal.
    """

    def __init__(self, terminal: TextIO, file: Path) -> None:
        self._terminal = terminal
        self._file = file

    def write(self, text: str) -> None:
        if not is_in_background(self._terminal):
            self._terminal.write(text)
            return
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(_COLOUR_CODES.sub("", text))

    def flush(self) -> None:
        self._terminal.flush()


def is_in_background(terminal: TextIO) -> bool:
    """Return whether this is a terminal on which another process is in the foreground."""
    try:
        return terminal.isatty() and (_IGNORES_INTERRUPTS or os.tcgetpgrp(terminal.fileno()) != os.getpgrp())
    except OSError:  # it is not the terminal of this session
        return False


def configure(
    level: str = "info", *, is_terminal: bool | None = None, background_file: Path | None = None
) -> None:
    """Configure structlog for this process; logs go to standard error.

    `is_terminal` chooses coloured text instead of JSON; by default it is found out. A process in the background of a terminal
    logs to `background_file` instead, if it is given.
    """
    terminal = sys.stderr.isatty() if is_terminal is None else is_terminal
    renderer = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    out: Any = sys.stderr
    if background_file is not None and sys.stderr.isatty():
        out = _Foreground(sys.stderr, background_file)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            TRACING.add_ids,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(_LineWriter(out)),  # type: ignore[arg-type]  # it writes and flushes
        cache_logger_on_first_use=True,
    )
