"""Measures stalls of this process, which are charged to no bot, and its usual lag.

A timer that fires late proves nothing about a bot, whose move may be unread. So a beat runs through the event
loop. If it is late by more than the bound, the delay is a stall.
"""

from __future__ import annotations

import asyncio
from collections import deque
from math import ceil, inf

LAG_BEAT_S = 0.02
STALL_BOUND_S = 0.05
"""Shorter delays are the usual jitter of a busy loop, and are covered by the grace."""
KEPT_STALLS = 1000
"""The number of stalls whose times are kept."""
SECOND_S = 1.0
LINK_BREAKING_S = 2.0
"""A stall of this length breaks links: pings were not answered in time, or bots dropped their connections."""
LINK_LOSS_NOTICED_S = 2.0
"""The time after such a stall, in seconds, during which lost links are attributed to it."""


class EventLoopLag:
    """Adds up the stalls of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._expected = loop.time() + LAG_BEAT_S
        self._timer: asyncio.TimerHandle | None = None
        self.stalled_s = 0.0
        """The sum of all stalls so far, in seconds. A user remembers the last value and takes the difference."""
        self.stalled_until = 0.0
        """The end of the last stall, on the clock of the loop."""
        self.broke_at = -inf
        """The end of the last stall that breaks links."""
        self._stalls: deque[tuple[float, float]] = deque(maxlen=KEPT_STALLS)
        """The beginning and the end of each of the last stalls."""
        self._delays: deque[tuple[float, float]] = deque()
        """The time and the length of each delay, in seconds; none is longer than the one before it."""

    def start_beat(self) -> None:
        """Starts the beat; it runs until `stop_beat`."""
        self._expected = self._loop.time() + LAG_BEAT_S
        self._timer = self._loop.call_at(self._expected, self._on_beat)

    def stop_beat(self) -> None:
        """Stops the beat."""
        if self._timer:
            self._timer.cancel()

    def note_stall(self, now: float) -> float:
        """Returns the sum of all stalls so far in seconds, including one that no beat has seen yet."""
        late = now - self._expected
        if late > STALL_BOUND_S:
            self.stalled_s += late
            self._stalls.append((self._expected, now))
            self.stalled_until = now
            self.broke_at = now if late >= LINK_BREAKING_S else self.broke_at
            self._note_delay(now, late)
            self._expected = now + LAG_BEAT_S
        return self.stalled_s

    def stalled_since(self, at: float) -> float:
        """Returns for how long the process stood still after `at`, in seconds, as far as `note_stall` has seen it."""
        return sum(max(0.0, ended - max(began, at)) for began, ended in self._stalls)

    def note_shortage(self) -> None:
        """Notes that no bot can connect now, so that links which are lost count as lost by a stall."""
        self.broke_at = self._loop.time()

    def broke_links(self) -> bool:
        """Whether links that are lost now were lost because this process stalled."""
        now = self._loop.time()
        self.note_stall(now)
        return now - self.broke_at < LINK_LOSS_NOTICED_S

    @property
    def longest_s(self) -> float:
        """The longest delay of about the last second, in seconds; only for display."""
        return max((delay for _, delay in list(self._delays)), default=0.0)

    def recent_ms(self, now: float) -> int:
        """Returns the longest delay of the last second in ms, including one that no beat has seen yet.

        Of a stall only the part within the bound counts: the rest is not charged anyway.
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
