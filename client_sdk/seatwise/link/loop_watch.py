"""Notices when a coroutine of a bot blocks the event loop, and says which one and what to do."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final
from weakref import WeakKeyDictionary

from seatwise.failures import is_sample

BEAT_EVERY_S: Final = 0.25
LOOKS: Final = 5
"""The loop is blocked if it has not run for so many looks. Looks are counted, because a process that is stopped makes none."""

_SDK: Final = str(Path(__file__).parents[1])
_ASYNCIO: Final = str(Path(asyncio.__file__).parent)

log = logging.getLogger("seatwise")


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
