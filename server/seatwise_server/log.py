"""Logging: one line for each event, as JSON unless standard error is a terminal."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TextIO

import structlog


class _Lenient:
    """A stream whose write errors are ignored: a log reader that has gone must not stop a match."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a broken pipe, a full disk; a closed file
            self._stream.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def configure(level: str = "info", *, is_terminal: bool | None = None) -> None:
    """Configures structlog for this process; logs go to standard error.

    `is_terminal` chooses coloured text instead of JSON; by default it is found out.
    """
    terminal = sys.stderr.isatty() if is_terminal is None else is_terminal
    renderer = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(_Lenient(sys.stderr)),  # type: ignore[arg-type]  # it writes and flushes
        cache_logger_on_first_use=True,
    )
