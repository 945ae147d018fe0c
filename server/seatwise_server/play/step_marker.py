"""Notes in a file which match is at a step of a game from outside, so that the note survives whatever the step does.

The process of such games may hang or crash within the author's code. Its parent then reads the note, voids that match, and
starts the process again, which takes over all other matches.
"""

from __future__ import annotations

import asyncio
import mmap
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import structlog

from seatwise.child_process import lower_priority
from seatwise_referee.hosted.hosted_game import GameFault

STEP_FILE_VARIABLE: Final = "SEATWISE_STEP_FILE"
"""The environment variable with the path of the file. Without it nothing is noted."""

GAME_FAULT_MARK: Final = "GAME_FAULT"
"""The reason for which the guard has a match aborted: its next owner voids it as a fault of the game."""

SIGN_OF_LIFE_S: Final = 0.5
"""Seconds between two signs of life of the event loop."""

SLOW_STEP_S: Final = 0.1
"""A step that takes longer, in seconds of CPU, gives all later steps of the process a lower priority."""
SLOW_GAME_NICENESS: Final = 10
"""The niceness of a process with slow steps, so that matches of other games have priority."""

_SIZE: Final = 256
_LONGEST_NOTE: Final = 200
_LAST_LENGTH: Final = 1 + _LONGEST_NOTE
"""The place of the length of the note of the last step, once that has ended; 0 after the next sign of life."""
_IMPORT_NOTE: Final = "import "
"""Goes before the name of an entry point. No match has a name with a space."""
_SIGNS: Final = slice(_SIZE - 8, _SIZE)
"""The place of the count of signs of life."""

ResultT = TypeVar("ResultT")

log = structlog.get_logger()


class StepMarker:
    """The note of one process."""

    def __init__(self) -> None:
        self._note: mmap.mmap | None = None
        self._memory = resource.RLIM_INFINITY
        self._has_low_priority = False

    def open_file(self, path: str) -> None:
        """Note steps in this file from now on; an empty path changes nothing."""
        if not path:
            return
        with open(path, "w+b") as file:
            file.truncate(_SIZE)
            self._note = mmap.mmap(file.fileno(), _SIZE)

    def limit_memory(self, limit: int) -> None:
        """Let the process have this many bytes during a step; 0 for no limit. A step that wants more gets a `MemoryError`."""
        self._memory = limit or resource.RLIM_INFINITY

    @property
    def is_on(self) -> bool:
        """Whether steps are noted: a guard watches this process."""
        return self._note is not None

    async def give_signs_of_life(self) -> None:
        """Count up as long as the event loop runs. Runs until cancelled."""
        count = 0
        while self._note is not None:
            count += 1
            self._note[_SIGNS] = count.to_bytes(8)
            self._note[_LAST_LENGTH] = 0  # the process has survived the last step
            await asyncio.sleep(SIGN_OF_LIFE_S)

    def run_step(self, match: str, step: Callable[[], ResultT]) -> ResultT:
        """Run a step of the match, which is noted while it runs. The first byte is the length, and it is written last."""
        note = self._note
        if note is None:
            return step()
        began_s = time.process_time()
        try:
            return self._run_noted(note, match, step)
        finally:
            self._heed_slow_step(match, time.process_time() - began_s)

    def _heed_slow_step(self, match: str, took_s: float) -> None:
        if took_s > SLOW_STEP_S and not self._has_low_priority:
            self._has_low_priority = lower_priority(SLOW_GAME_NICENESS)
            log.warning("game_step_slow", match=match, cpu_s=round(took_s, 3), niceness=SLOW_GAME_NICENESS)

    def run_import(self, entry: str, load: Callable[[], ResultT]) -> ResultT:
        """Import the package of an entry point, which is noted meanwhile."""
        return load() if self._note is None else self._run_noted(self._note, f"{_IMPORT_NOTE}{entry}", load)

    def _run_noted(self, note: mmap.mmap, text: str, step: Callable[[], ResultT]) -> ResultT:
        name = text.encode()[:_LONGEST_NOTE]
        note[_LAST_LENGTH] = 0
        note[1 : 1 + len(name)] = name
        note[0] = len(name)
        usual, most = resource.getrlimit(resource.RLIMIT_DATA)
        try:
            resource.setrlimit(resource.RLIMIT_DATA, (_lower_limit(self._memory, usual), most))
            return step()
        except KeyboardInterrupt as interrupt:  # never Ctrl-C, for which the event loop has a handler
            raise GameFault(f"{text}: its code raised KeyboardInterrupt") from interrupt
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (usual, most))
            note[_LAST_LENGTH] = len(name)
            note[0] = 0


def _lower_limit(one: int, other: int) -> int:
    """Return the lower one of two limits, each of which may be none."""
    limits = [limit for limit in (one, other) if limit != resource.RLIM_INFINITY]
    return min(limits, default=resource.RLIM_INFINITY)


def read_marked_match(path: Path) -> str:
    """Return the match that was at a step when the process ended; empty if none was."""
    note = _read_note(path)
    return "" if note.startswith(_IMPORT_NOTE) else note


def read_imported_package(path: Path) -> str:
    """Return the entry point whose package was imported when the process ended; empty if none was."""
    note = _read_note(path)
    return note.removeprefix(_IMPORT_NOTE) if note.startswith(_IMPORT_NOTE) else ""


def read_last_match(path: Path) -> str:
    """Return the match whose step was the last one before the process ended; empty if there was a sign of life after it."""
    note = _read_note(path, _LAST_LENGTH)
    return "" if note.startswith(_IMPORT_NOTE) else note


def _read_note(path: Path, length_at: int = 0) -> str:
    try:
        note = path.read_bytes()
    except OSError:
        return ""
    return note[1 : 1 + note[length_at]].decode(errors="replace") if note else ""


def read_signs_of_life(path: Path) -> int:
    """Return how many signs of life the process has given; 0 for none yet."""
    try:
        return int.from_bytes(path.read_bytes()[_SIGNS])
    except OSError:
        return 0


STEP_MARKER: Final = StepMarker()
"""The note of this process."""
