"""Token buckets: how often each caller may do something, with a wait instead of a refusal while it is only a little too often.

A bucket is one number: the time at which it is full again (the generic cell rate algorithm, ITU-T I.371). So there is no queue:
a call that must wait is told at once for how long. Buckets are kept in the memory of this process only.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

MOST_BUCKETS = 10_000
"""Buckets that are kept. Above that the one that was used least recently is dropped, and with it what its caller has used."""
MOST_DEBT_BURSTS = 8
"""No caller gets so many bursts into debt, so a bucket that is further from full tells of a clock that has jumped."""


class TokenBuckets:
    """One bucket for each key. A new bucket is full."""

    def __init__(self, rate: float, burst: float, now: Callable[[], float]) -> None:
        """A bucket gets `rate` units a second, and holds `burst` units at most. `now` returns seconds, and may jump."""
        self._rate = rate
        self._burst = burst
        self._now = now
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def measure_level(self, key: str) -> float:
        """Returns how full the bucket is: 1 is full, 0 is empty, and less means that calls wait already."""
        return 1.0 - self._debt_s(key) * self._rate / self._burst

    def measure_wait(self, key: str, units: float) -> float:
        """Returns the seconds until so many units are there; a call of more than the bucket holds waits for a full one."""
        return max(0.0, self._debt_s(key) + (min(units, self._burst) - self._burst) / self._rate)

    def take_units(self, key: str, units: float) -> None:
        """Takes the units even if the bucket does not hold so many, but never more than a full one holds."""
        full_at = self._now() + self._debt_s(key) + min(units, self._burst) / self._rate
        self._full_at.pop(key, None)
        self._full_at[key] = full_at
        if len(self._full_at) > MOST_BUCKETS:
            self._full_at.popitem(last=False)

    def _debt_s(self, key: str) -> float:
        """Returns the seconds until the bucket is full. After a jump of the clock back it counts as just empty."""
        now, full_at = self._now(), self._full_at.get(key, -math.inf)
        debt_s = max(0.0, full_at - now)
        longest_s = MOST_DEBT_BURSTS * self._burst / self._rate
        if debt_s <= longest_s:
            return debt_s
        self._full_at[key] = now + self._burst / self._rate
        return self._burst / self._rate
