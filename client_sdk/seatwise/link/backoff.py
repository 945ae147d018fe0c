"""How long to wait before trying again: exponential, with full jitter, for ever.

Full jitter means a random time between nothing and the bound, so that two thousand bots which lost
the same referee at the same moment do not come back at the same moment.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from seatwise.errors import SeatwiseError, ServerFullError

FIRST_S = 0.1
LONGEST_S = 5.0
"""A bot's clock runs while it waits, so it does not wait long."""


class Backoff:
    """The waits of one link; `reset` it when the link has proved good."""

    def __init__(
        self,
        first_s: float = FIRST_S,
        longest_s: float = LONGEST_S,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._chance = chance
        self.failures = 0
        """How often it has failed since the last `reset`."""

    def reset(self) -> None:
        """The next failure is the first again."""
        self.failures = 0

    def next_s(self, error: SeatwiseError | None = None) -> float:
        """The next wait, in seconds; never shorter than a full server asks for."""
        bound_s = min(self._longest_s, self._first_s * 2 ** min(self.failures, 30))
        self.failures += 1
        asked_s = error.retry_after if isinstance(error, ServerFullError) else 0.0
        return asked_s + bound_s * self._chance()

    async def wait(self, error: SeatwiseError | None = None) -> None:
        """Sleeps for `next_s`."""
        await asyncio.sleep(self.next_s(error))
