"""How long this process stood still: time that is charged to nobody.

A timer that fires late proves nothing about a bot, whose move may lie unread. So a beat runs through
the event loop; when it comes late by more than the bound, the delay is a stall.
"""

from __future__ import annotations

import asyncio

BEAT_S = 0.02
BOUND_S = 0.05
"""Delays up to here are the usual jitter of a busy loop and stay within the grace."""


class Lag:
    """Adds up the stalls of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._expected = loop.time() + BEAT_S
        self._timer: asyncio.TimerHandle | None = None
        self.stalled_s = 0.0
        """All stalls so far; whoever reckons with them remembers the last figure he saw."""

    def start(self) -> None:
        """Beats until `stop`."""
        self._expected = self._loop.time() + BEAT_S
        self._timer = self._loop.call_at(self._expected, self._beat)

    def stop(self) -> None:
        """No more beats."""
        if self._timer:
            self._timer.cancel()

    def notice(self, now: float) -> float:
        """All stalls so far, with one that no beat has seen yet."""
        late = now - self._expected
        if late > BOUND_S:
            self.stalled_s += late
            self._expected = now + BEAT_S
        return self.stalled_s

    def _beat(self) -> None:
        now = self._loop.time()
        self.notice(now)
        self._expected = now + BEAT_S
        self._timer = self._loop.call_at(self._expected, self._beat)
