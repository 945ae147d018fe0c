"""The reactions of a referee, for all its matches, when its lease or the store is lost and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from seatwise_server.play.lease import Lease
from seatwise_server.play.stream_registry import PlayStreams
from seatwise_server.play.table import Table
from seatwise_server.store import AppendResult


class MatchOwnership:
    """The matches of one referee, and its right to send messages for them."""

    def __init__(self, tables: Mapping[str, Table], streams: PlayStreams, lease: Lease) -> None:
        self._tables = tables
        self._streams = streams
        self._lease = lease
        self._loop = asyncio.get_running_loop()
        self._resumed_at = self._loop.time()
        """Outages of the store up to this time were already taken off all charges."""

    def owned_matches(self) -> dict[str, int]:
        """Returns the matches that are open here, with their epochs."""
        return {name: table.epoch for name, table in self._tables.items()}

    def lose_match(self, match: str, answer: AppendResult) -> None:
        """Gives up a match that belongs to another owner, or that Redis has forgotten: nothing more is sent for it."""
        table = self._tables[match]
        if not table.is_closed:
            table.lose_ownership(answer)

    def on_lease_regained(self) -> None:
        """Writes what waits. The time in which this referee was silent is charged to no bot."""
        now = self._loop.time()
        silent_s = self._lease.now - self._lease.silent_since
        self.on_store_back(min(silent_s, now - self._resumed_at))
        self._streams.wake_writers()

    def on_shortage(self, ms: int) -> None:
        """In the last `ms` no bot could connect here: those that are not connected are waited for."""
        for table in list(self._tables.values()):
            table.wait_for_absent(ms)

    def on_store_back(self, gap_s: float) -> None:
        """Takes an outage of the store off the clocks of all tables."""
        self._resumed_at = self._loop.time()
        for table in list(self._tables.values()):
            table.resume_after_gap(max(0.0, gap_s))
