"""How often a builder may lay, so that the referee never finds it too often."""

from __future__ import annotations

from typing import Final

from seatwise_referee.race import MOST_LAYS

BURST: Final = 2 * MOST_LAYS // 5
"""So many at once, for a bot lays quickly when a round begins."""

STEP_MS: Final = 2500 / MOST_LAYS
"""Then one every so often. Both together leave room in a second for a call, and for a network that bunches."""


class Rate:
    """One seat's. The caller says what time it is, in milliseconds."""

    def __init__(self) -> None:
        self._due_ms = 0.0
        """When all that was sent would have been sent, had it been sent one by one."""

    def ready_ms(self, now: float) -> float:
        """When the next may be sent; not before now."""
        return max(now, self._due_ms - BURST * STEP_MS)

    def spend(self, now: float) -> None:
        """One is sent."""
        self._due_ms = max(now, self._due_ms) + STEP_MS

    def wait(self, now: float, wait_ms: float) -> None:
        """None is to be sent for so long."""
        self._due_ms = max(self._due_ms, now + wait_ms + BURST * STEP_MS)
