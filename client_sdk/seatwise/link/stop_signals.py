"""Stops a run at Ctrl-C and SIGTERM: the first signal finishes the open matches, the second leaves them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from seatwise.defaults import INTERRUPTED
from seatwise.link.bot_session import BotSession

LOOP_BLOCKED_S: Final = 1.0
"""How long the event loop may take to leave the matches after the second signal, in seconds, before it is interrupted."""
INTERRUPT_PATIENCE_S: Final = 4.0
"""How long the process may take to end after that, in seconds, before it is ended the hard way."""

log = logging.getLogger("seatwise")


@contextmanager
def handling_signals(session: BotSession) -> Iterator[None]:
    """Drain at the first signal, and leave at the second. Only the main thread can handle signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stop = StopSignals(session)
    before = {number: signal.signal(number, stop.handle_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        stop.has_left.set()
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


class StopSignals:
    """Counts the signals, and sees to it that the second ends the process even if a bot blocks the event loop."""

    def __init__(self, session: BotSession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._received = 0
        self._is_leaving = threading.Event()
        self._is_interrupting = False
        self.has_left = threading.Event()
        """Set when the run is over."""

    def handle_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  # as `signal` calls it
        """Handle a signal, in the main thread, possibly in the middle of a bot's method."""
        if self._is_interrupting:
            raise KeyboardInterrupt
        self._received += 1
        if self._received == 1:
            self._loop.call_soon_threadsafe(self._drain_matches, number)
            return
        self._loop.call_soon_threadsafe(self._leave_matches)
        if self._received == 2:
            threading.Thread(target=self._end_blocked_process, daemon=True).start()

    def _drain_matches(self, number: int) -> None:
        log.info(
            "open matches: %d, to be finished first; Ctrl-C again leaves at once", self._session.open_seats
        )
        self._session.drain_matches(leaves_dead_server=number == signal.SIGTERM)

    def _leave_matches(self) -> None:
        self._is_leaving.set()
        if not self.has_left.is_set():
            log.warning("open matches: %d, left; their default moves are played", self._session.open_seats)
        self._session.leave_matches()

    def _end_blocked_process(self) -> None:
        """End the process if the event loop does not. A coroutine that never awaits is interrupted by an exception."""
        if not self._is_leaving.wait(LOOP_BLOCKED_S):
            log.warning("left, because the bot does not let the event loop run; default moves are played")
            self._is_interrupting = True
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if not self.has_left.wait(INTERRUPT_PATIENCE_S):
            sys.stderr.flush()
            os._exit(INTERRUPTED)
