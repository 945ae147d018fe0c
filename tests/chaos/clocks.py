"""Clocks of processes that a run can set: libfaketime stands between a process and the time of day."""

from __future__ import annotations

import os
from pathlib import Path

PLACES = ("/usr/lib", "/usr/lib64", "/usr/local/lib")


def find_library() -> str:
    """The library that fakes the time for programs with threads; empty if it is not installed."""
    for place in PLACES:
        for found in Path(place).glob("**/faketime/libfaketimeMT.so.1"):
            return str(found)
    return ""


class FakedClock:
    """The time of day of one process, however often it is started. The time since its start stays true."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set_by(0)

    @property
    def env(self) -> dict[str, str]:
        """The environment in which this clock is seen."""
        return {
            **os.environ,
            "LD_PRELOAD": find_library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",  # its name in older versions
        }

    def set_by(self, seconds: int) -> None:
        """The clock is so far ahead, or behind if below 0; the process sees it within a second."""
        fresh = self._path.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}\n")
        fresh.replace(self._path)
