"""What a referee does about all its matches at once when its lease, or the store, comes and goes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from seatwise_server.play.lag import EventLoopLag
from seatwise_server.play.lease import Lease
from seatwise_server.play.stream_registry import PlayStreams
from seatwise_server.play.table import Table
from seatwise_server.store import AppendResult


class MatchOwnership:
    """The matches of one referee, as far as its right to speak for them goes."""

    def __init__(
        self, tables: Mapping[str, Table], streams: PlayStreams, lease: Lease, lag: EventLoopLag
    ) -> None:
        self._tables = tables
        self._streams = streams
        self._lease = lease
        self._lag = lag
        self._loop = asyncio.get_running_loop()
        self._resumed_at = self._loop.time()
        """Gaps of the store up to then are off all charges."""
        self._stalled_s = 0.0
        """All our stalls up to the last heartbeat."""

    def owned_matches(self) -> dict[str, int]:
        """Returns the matches that are open here, with their epochs."""
        return {name: table.epoch for name, table in self._tables.items()}

    def lose_match(self, match: str, answer: AppendResult) -> None:
        """Lets go of a match that is another's, or that Redis has forgotten: nothing more is said of it here."""
        table = self._tables[match]
        if not table.is_closed:
            table.lose_ownership(answer)

    def on_beat_confirmed(self) -> None:
        """Notes that the others know that this referee lives."""
        self._stalled_s = self._lag.note_stall(self._loop.time())

    def on_lease_regained(self) -> None:
        """Writes what waits; the time in which this referee was silent is charged to nobody."""
        now = self._loop.time()
        silent_s = self._lease.now - self._lease.silent_since
        stalled_s = self._lag.note_stall(now) - self._stalled_s
        self.on_store_back(min(silent_s, now - self._resumed_at) - stalled_s)
        self._streams.wake_writers()

    def on_store_back(self, gap_s: float) -> None:
        """Takes a gap of the store off the clocks of all tables."""
        self._resumed_at = self._loop.time()
        for table in list(self._tables.values()):
            table.resume_after_gap(max(0.0, gap_s))
