"""Watches a run: a signal stops it, and a coroutine of a bot that blocks the event loop is named, with what to do."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final
from weakref import WeakKeyDictionary

from seatwise.bot import is_sample
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


BEAT_EVERY_S: Final = 0.25
LOOKS: Final = 5
"""The loop is blocked if it has not run for so many looks. Looks are counted, because a process that is stopped makes none."""

_SDK: Final = str(Path(__file__).parents[1])
_ASYNCIO: Final = str(Path(asyncio.__file__).parent)


@contextmanager
def watching_loop() -> Iterator[None]:
    """Watch the running event loop as long as the context lasts. All runs in one loop share a watch."""
    loop = asyncio.get_running_loop()
    watch = _WATCHES.get(loop) or LoopWatch(loop)
    _WATCHES[loop] = watch
    watch.users += 1
    try:
        yield
    finally:
        watch.users -= 1
        if not watch.users:
            watch.stop()
            _WATCHES.pop(loop, None)


class LoopWatch:
    """A thread that asks the event loop for a sign of life, again and again."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.users = 0
        """Number of runs that need the watch."""
        self._loop = loop
        self._thread_id = threading.get_ident()
        self._stopped = threading.Event()
        self._reported: set[tuple[str, int]] = set()
        threading.Thread(target=self._watch, name="seatwise-loop-watch", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(BEAT_EVERY_S):
            alive = threading.Event()
            try:
                self._loop.call_soon_threadsafe(alive.set)
            except RuntimeError:  # the loop is closed
                return
            if not any(alive.wait(BEAT_EVERY_S) for _ in range(LOOKS)):
                self._report_block()
            while not alive.wait(BEAT_EVERY_S):
                if self._stopped.is_set():
                    return

    def _report_block(self) -> None:
        frame = find_own_frame(sys._current_frames().get(self._thread_id))
        if frame is None:
            return
        code = frame.f_code
        place = (code.co_filename, code.co_firstlineno)
        if place in self._reported:
            return
        self._reported.add(place)
        log.warning(
            "%s has not let the event loop run for %.1f s (%s, line %d). Meanwhile no match goes on and no ping is answered. "
            "Write `def` instead of `async def`, so that it runs in a thread, or `await asyncio.sleep(0)` now and then. "
            "The second Ctrl-C ends the process",
            code.co_name, LOOKS * BEAT_EVERY_S, Path(code.co_filename).name, frame.f_lineno,
        )  # fmt: skip


def find_own_frame(innermost: FrameType | None) -> FrameType | None:
    """Return the bot's method that is running, given the innermost frame of its thread; `None` if none of the bot's code runs."""
    own = None
    frame = innermost
    while frame is not None and not _is_ours(frame.f_code.co_filename):
        own, frame = frame, frame.f_back
    return own if frame is not None else None


def _is_ours(file: str) -> bool:
    return file.startswith((_SDK, _ASYNCIO)) and not is_sample(file)


_WATCHES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, LoopWatch]] = WeakKeyDictionary()
