"""How much of the machine all searches of this process may take together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from time import monotonic, sleep
from typing import Final

LEAST_SEARCH_S: Final = 0.001
"""A search that has less time left does not begin."""


class SearchLimit:
    """Lets a search begin when one of the cores is free that searches may use."""

    def __init__(self, cores: float) -> None:
        """Allow so many cores, more than 0. With less than one, searches pause in between, so that this is their share of it."""
        self._set_cores(cores)

    def limit_share(self, share: float) -> None:
        """Allow a share of all cores from now on, from above 0 to 1. Call it before the first search."""
        self._set_cores(share * (os.cpu_count() or 1))

    def _set_cores(self, cores: float) -> None:
        self._slots = BoundedSemaphore(max(1, int(cores)))
        self._pause_for_each_s = max(0.0, 1 / cores - 1)
        self._next_s = 0.0

    @contextmanager
    def take_slot(self, longest_s: float) -> Iterator[float | None]:
        """Wait for a core, and hold it. Yields the seconds left for the search, 0 for no limit; `None` if none are left.

        `longest_s` is the time for waiting and searching together, in seconds; 0 for no limit.
        """
        end_s = monotonic() + longest_s
        if not self._slots.acquire(timeout=longest_s or None):
            yield None
            return
        try:
            left_s = self._wait_for_turn(end_s if longest_s else None)
            started_s = monotonic()
            yield left_s
            if left_s is not None:
                now_s = monotonic()
                self._next_s = now_s + (now_s - started_s) * self._pause_for_each_s
        finally:
            self._slots.release()

    def _wait_for_turn(self, end_s: float | None) -> float | None:
        pause_s = max(0.0, self._next_s - monotonic())
        if end_s is not None and monotonic() + pause_s + LEAST_SEARCH_S > end_s:
            return None
        sleep(pause_s)
        return 0.0 if end_s is None else max(LEAST_SEARCH_S, end_s - monotonic())


SEARCH_LIMIT: Final = SearchLimit(os.cpu_count() or 1)
"""The limit of this process. The server lowers it in the process of its house bots."""
