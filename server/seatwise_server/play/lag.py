"""How long this process stood still, which is charged to nobody, and how much it lags at all.

A timer that fires late proves nothing about a bot, whose move may lie unread. So a beat runs through
the event loop; when it comes late by more than the bound, the delay is a stall.
"""

from __future__ import annotations

import asyncio
from collections import deque
from math import ceil, inf

LAG_BEAT_S = 0.02
STALL_BOUND_S = 0.05
"""Delays up to here are the usual jitter of a busy loop and stay within the grace."""
SECOND_S = 1.0
LINK_BREAKING_S = 2.0
"""A standstill of this length breaks links: nobody heard our pings, or bots gave us up."""
LINK_LOSS_NOTICED_S = 2.0
"""So long after a stall that breaks links the last of them is noticed."""


class EventLoopLag:
    """Adds up the stalls of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._expected = loop.time() + LAG_BEAT_S
        self._timer: asyncio.TimerHandle | None = None
        self.stalled_s = 0.0
        """All stalls so far; whoever reckons with them remembers the last figure he saw."""
        self.stalled_until = 0.0
        """When the last of them was over, on the clock of the loop."""
        self.broke_at = -inf
        """When the last stall that breaks links was over."""
        self._delays: deque[tuple[float, float]] = deque()
        """When each was seen, and how long it was; none is longer than the one before."""

    def start_beat(self) -> None:
        """Beats until `stop`."""
        self._expected = self._loop.time() + LAG_BEAT_S
        self._timer = self._loop.call_at(self._expected, self._on_beat)

    def stop_beat(self) -> None:
        """No more beats."""
        if self._timer:
            self._timer.cancel()

    def note_stall(self, now: float) -> float:
        """All stalls so far, with one that no beat has seen yet."""
        late = now - self._expected
        if late > STALL_BOUND_S:
            self.stalled_s += late
            self.stalled_until = now
            self.broke_at = now if late >= LINK_BREAKING_S else self.broke_at
            self._note_delay(now, late)
            self._expected = now + LAG_BEAT_S
        return self.stalled_s

    def broke_links(self) -> bool:
        """Whether links that are lost now were lost while we stood still."""
        now = self._loop.time()
        self.note_stall(now)
        return now - self.broke_at < LINK_LOSS_NOTICED_S

    @property
    def longest_s(self) -> float:
        """The longest delay that is remembered, about a second's worth; for people to see."""
        return max((delay for _, delay in list(self._delays)), default=0.0)

    def recent_ms(self, now: float) -> int:
        """The longest delay of the last second, one that no beat has seen yet included.

        Of a stall only what stays within the bound: the rest of it is charged to nobody anyway.
        """
        while self._delays and self._delays[0][0] < now - SECOND_S:
            self._delays.popleft()
        longest_s = max(now - self._expected, self._delays[0][1] if self._delays else 0.0)
        return ceil(min(longest_s, STALL_BOUND_S) * 1000)

    def _note_delay(self, now: float, late: float) -> None:
        while self._delays and self._delays[-1][1] <= late:
            self._delays.pop()
        self._delays.append((now, late))

    def _on_beat(self) -> None:
        now = self._loop.time()
        self.note_stall(now)
        self._note_delay(now, max(0.0, now - self._expected))
        self._expected = now + LAG_BEAT_S
        self._timer = self._loop.call_at(self._expected, self._on_beat)
