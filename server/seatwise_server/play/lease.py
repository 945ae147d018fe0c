"""The lease of a referee: while it holds, no other referee can have taken over its matches, so it may send messages.

Other processes call this one dead if they saw no change of its heartbeat for the whole lease. So its matches are certainly its
own until the lease, less a margin, has passed since its last confirmed heartbeat was *sent*. After that it sends nothing until
a heartbeat is confirmed again, and then every fence.
"""

from __future__ import annotations

from collections.abc import Callable

from seatwise_server.store import Flusher
from seatwise_server.timings import REFEREE_LEASE_MARGIN_S, REFEREE_LEASE_S

STORE_RETRY_S = 0.5
"""After no answer of the store, the referee asks again after this time, in seconds."""


class Lease:
    """The lease of one referee process. It holds from the first `renew_lease` on."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = clock()
        self._holds = False
        self.lapses = 0
        """The number of times that it was lost."""
        self.breaks = 0
        """The number of heartbeats that were confirmed only after the one before had expired, whether it was held or lost."""
        self.silent_since = clock()
        """When it was lost the last time, on its clock."""

    @property
    def now(self) -> float:
        """The present time on its clock."""
        return self._clock()

    @property
    def is_held(self) -> bool:
        """Whether it holds, as far as is known; `holds` makes sure."""
        return self._holds and self._clock() < self._until

    def holds(self) -> bool:
        """Whether the lease holds. Once lost it stays lost until `renew_lease`, whatever heartbeats are confirmed."""
        if self._holds and self._clock() >= self._until:
            self._holds = False
            self.lapses += 1
            self.silent_since = self._until
        return self._holds

    def note_confirmed(self, sent: float) -> None:
        """Notes that a heartbeat was confirmed that had been sent at `sent`."""
        self.holds()  # a heartbeat alone must not restore a lost lease
        self.breaks += self._clock() >= self._until
        self._until = max(self._until, sent + REFEREE_LEASE_S - REFEREE_LEASE_MARGIN_S)

    def give_up(self) -> None:
        """Give the lease up, because others may now take the matches: nothing is sent any more."""
        if self.holds():
            self._holds = False
            self.lapses += 1
            self.silent_since = self._clock()

    def renew_lease(self) -> bool:
        """Restore the lease after all fences were confirmed; returns False if it has expired again meanwhile."""
        self._holds = self._clock() < self._until
        return self._holds


class LeasedJournal:
    """The journal, which counts as away while the lease does not hold, so that no bot's time runs out then."""

    def __init__(self, flusher: Flusher, lease: Lease) -> None:
        self._journal = flusher
        self._lease = lease
        self.append_entries = flusher.append_entries

    @property
    def healthy(self) -> bool:
        """Whether the store answers, and the lease holds."""
        return self._journal.healthy and self._lease.holds()
