"""The time of one match at its table: milliseconds since the match was opened, and the one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

TIMER_MARGIN_MS = 0.1
"""Timers are set this much later, in ms: floats and the loop round, and a timer that is too early would fire
again at once.
"""


class MatchClock:
    """The clock of one match. `at` is always a time on the clock of the loop, in seconds."""

    __slots__ = ("_loop", "_on_timer", "_timer", "opened_s")

    def __init__(self, at_ms: int, on_timer: Callable[[], None]) -> None:
        """The match is `at_ms` old now; `on_timer` is called when the timer is due."""
        self._loop = asyncio.get_running_loop()
        self._on_timer = on_timer
        self._timer: asyncio.TimerHandle | None = None
        self.opened_s = self._loop.time() - at_ms / 1000
        """When the match was opened."""

    @property
    def now(self) -> float:
        """The present time on the clock of the loop."""
        return self._loop.time()

    @property
    def now_ms(self) -> int:
        """The present time of the match."""
        return self.ms_at(self._loop.time())

    def ms_at(self, at: float) -> int:
        """Returns the time of the match at `at`."""
        return max(0, int((at - self.opened_s) * 1000))

    def set_timer(self, at_ms: int | None) -> None:
        """Sets the timer. Deadlines mostly move back, so a timer that is early enough stays."""
        if at_ms is None:
            return
        when = self.opened_s + (at_ms + TIMER_MARGIN_MS) / 1000
        if self._timer is None or self._timer.cancelled() or self._timer.when() > when:
            self.stop_timer()
            self._timer = self._loop.call_at(when, self.let_time_pass)

    def stop_timer(self) -> None:
        """Stops the timer, if it is set."""
        if self._timer:
            self._timer.cancel()

    def let_time_pass(self) -> None:
        """Reports that time has passed, as the timer does."""
        self._timer = None
        self._on_timer()
