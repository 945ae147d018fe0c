"""Whether this referee may speak: as long as nobody can have taken over what it owns.

Others call a process dead when its heartbeat stood still for the whole lease, as they saw it. So we are
certain of our matches until the lease, less a margin, has passed since the last heartbeat that Redis has
confirmed was *sent*. After that nothing is said until a heartbeat is confirmed again, and after it every fence.
"""

from __future__ import annotations

from collections.abc import Callable

from seatwise_server.timings import REFEREE_LEASE_MARGIN_S, REFEREE_LEASE_S

STORE_RETRY_S = 0.5
"""When the store gives no answer, the referee asks again after this time, in seconds."""


class Lease:
    """One for each referee process. It holds from its first `renew` on."""

    def __init__(self, clock: Callable[[], float], lease_s: float = REFEREE_LEASE_S) -> None:
        self._clock = clock
        self._certain_s = lease_s - REFEREE_LEASE_MARGIN_S
        self._until = clock()
        self._holds = False
        self.lapses = 0
        """How often it was lost."""
        self.breaks = 0
        """How often heartbeats came too late to follow on the one before, while we spoke or while we were silent."""
        self.silent_since = clock()
        """When it was lost the last time, on its clock."""

    @property
    def now(self) -> float:
        """On its clock."""
        return self._clock()

    @property
    def is_held(self) -> bool:
        """As far as is known; `holds` makes sure."""
        return self._holds and self._clock() < self._until

    def holds(self) -> bool:
        """Whether we may speak. Once lost it is lost until `renew`, whatever heartbeats say."""
        if self._holds and self._clock() >= self._until:
            self._holds = False
            self.lapses += 1
            self.silent_since = self._until
        return self._holds

    def note_confirmed(self, sent: float) -> None:
        """A heartbeat that was sent then has been confirmed."""
        self.holds()  # what was lost before is not to be found again by this alone
        self.breaks += self._clock() >= self._until
        self._until = max(self._until, sent + self._certain_s)

    def give_up(self) -> None:
        """Others may have what we owned, from now on: nothing is said any more."""
        if self.holds():
            self._holds = False
            self.lapses += 1
            self.silent_since = self._clock()

    def renew_lease(self) -> bool:
        """All fences are confirmed to be ours; False when the lease is too old again meanwhile."""
        self._holds = self._clock() < self._until
        return self._holds
