"""The rate at which a builder may lay, so that the referee never rejects a layout as too many."""

from __future__ import annotations

from typing import Final

from seatwise_referee.race import MOST_LAYS_A_SECOND

BURST: Final = 2 * MOST_LAYS_A_SECOND // 5
"""Number of layouts that may follow each other at once, because a bot lays quickly when a round begins."""

STEP_MS: Final = 2500 / MOST_LAYS_A_SECOND
"""After that, one layout in each interval. Both limits leave room in a second for a call, and for a
network that delays messages in bunches.
"""


class SendRate:
    """The rate of one seat. The caller passes the time, in milliseconds."""

    def __init__(self) -> None:
        self._due_ms = 0.0
        """The time at which everything sent so far would have been sent at the steady rate."""

    def ready_ms(self, now: float) -> float:
        """Return when the next layout may be sent; not before now."""
        return max(now, self._due_ms - BURST * STEP_MS)

    def count_layout(self, now: float) -> None:
        """Count a layout that is sent now."""
        self._due_ms = max(now, self._due_ms) + STEP_MS

    def pause_for(self, now: float, wait_ms: float) -> None:
        """Send no layout for so long."""
        self._due_ms = max(self._due_ms, now + wait_ms + BURST * STEP_MS)
