"""Notes in the store which bots of a match have sat down, and which stay away."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from seatwise_server.background_tasks import BackgroundTasks
from seatwise_server.play.no_shows import NoShowNotes, find_missed_seats
from seatwise_server.play.seat_offers import SeatOffers
from seatwise_server.play.table import Table
from seatwise_server.store import Flusher, SeatOf, Store
from seatwise_server.store.errors import StoreUnavailable

GATHER_SITS_S = 0.05
"""The time for which seats that bots take are collected, in seconds."""


class SeatNotes:
    """The notes of one referee."""

    def __init__(self, store: Store, flusher: Flusher, offers: SeatOffers, work: BackgroundTasks) -> None:
        """`work` are tasks that must finish before the referee stops."""
        self._store = store
        self._flusher = flusher
        self._offers = offers
        self._work = work
        self._taken: list[tuple[str, SeatOf]] = []
        """Bots that have just sat down in a seat of a queue, which is not noted yet."""

    def on_sit(self, table: Table, seat: int) -> None:
        """Has it noted that the bot of this seat has sat down."""
        if not self._taken:
            self._work.start_task(self._note_taken())
        self._taken.append((table.match.setup.bots[seat], SeatOf(table.name, seat)))

    async def _note_taken(self) -> None:
        """Notes the seats that bots take within a short time in one message; most bots of a match sit down together."""
        await asyncio.sleep(GATHER_SITS_S)
        taken, self._taken = self._taken, []
        await self._offers.note_taken(taken)

    def on_dealt(self, table: Table) -> None:
        """Has it noted that the match runs, and which bots are absent."""
        self._work.start_task(self._offers.note_running(table))
        if any(not own.has_sat for own in table.match.position.seats):
            self._work.start_task(self._note_absence(table))

    async def _note_absence(self, table: Table) -> None:
        """Notes absent bots at once; the delivery repeats it, in case this fails."""
        setup = table.match.setup
        with suppress(StoreUnavailable):
            absence = find_missed_seats(setup, self._flusher.tail_entries(table.name))
            await NoShowNotes(self._store).note_absence(setup, absence)
