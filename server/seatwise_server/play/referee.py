"""The referee role: takes match jobs, owns their tables, sees them through to their delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from seatwise_referee.ending import VoidReason
from seatwise_server.play.delivery import Delivery, End, end_of
from seatwise_server.play.inbound import Intake
from seatwise_server.play.lag import Lag
from seatwise_server.play.lease import Lease
from seatwise_server.play.match_claims import Opening, Owned, UnknownFormat
from seatwise_server.play.match_logging import log_end, log_opened
from seatwise_server.play.seat_offers import HEARD_S, Offering
from seatwise_server.play.stream_registry import Streams
from seatwise_server.play.table import Journal, Table
from seatwise_server.play.takeover import Estate
from seatwise_server.store import AppendResult, Fence, Flusher, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.jobs import Job

TAKE_BLOCK_MS = 1000
MOST_AT_ONCE = 64
RETRY_S = 0.5
FAREWELL_S = 1.0
"""A store that is gone need not hear that we go."""
ANSWER_S = 0.01
"""About what the journal takes to answer."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Place:
    """Who this referee is."""

    name: str
    """Unique to this process; the owner in fences."""
    address: str
    """host:port for bots; empty where lobby and referee are one server."""
    most_tables: int


class _OwnJournal:
    """The journal of a referee that has to be certain of its matches: until then nobody's time runs out."""

    def __init__(self, journal: Journal, lease: Lease) -> None:
        self._journal = journal
        self._lease = lease
        self.append_entries = journal.append_entries

    @property
    def healthy(self) -> bool:
        """See `table.Journal`."""
        return self._journal.healthy and self._lease.holds()


class Referee:
    """One for each process."""

    def __init__(self, place: Place, store: Store, flusher: Flusher, lag: Lag, delivery: Delivery) -> None:
        self.place = place
        self.is_draining = False
        """It takes no new matches."""
        self.is_stopping = False
        self._loop = asyncio.get_running_loop()
        self.lease = Lease(self._loop.time)
        self.streams = Streams()
        self.tables: dict[str, Table] = {}
        self.intake = Intake(self.tables, delivery.end_for)
        self._store = store
        self._flusher = flusher
        self._journal = _OwnJournal(flusher, self.lease)
        self._lag = lag
        self._delivery = delivery
        self._jobs: dict[str, Job] = {}
        self._opening: set[str] = set()
        self._leaving: dict[str, asyncio.Task[None]] = {}
        """Matches of another version, which are about to be given back."""
        self._opening_of = Opening(place.name, store, flusher, delivery)
        self._offering = Offering(place.name, place.address, store)
        self._work: set[asyncio.Task[None]] = set()
        self._waits: set[asyncio.Task[None]] = set()
        """What nobody waits for."""
        self._frozen_until = self._loop.time()
        """Up to then the store's gaps are off all charges."""
        self._stalled_s = 0.0
        """All our stalls up to the last heartbeat."""

    @property
    def name(self) -> str:
        """Unique to this process."""
        return self.place.name

    @property
    def address(self) -> str:
        """Where bots reach it."""
        return self.place.address

    # Matches

    @property
    def free(self) -> int:
        """How many more matches it takes."""
        return (
            0 if self.is_draining else max(0, self.place.most_tables - len(self.tables) - len(self._opening))
        )

    @property
    def hosted(self) -> int:
        """How many are open here, or about to be."""
        return len(self.tables.keys() | self._opening)

    def has(self, match: str) -> bool:
        """Whether the match is open here, or about to be, or not to be had here."""
        return match in self.tables or match in self._opening or match in self._leaving

    async def take_jobs(self) -> None:
        """Takes matches as long as there are free tables. Runs until cancelled."""
        while True:
            try:
                await self._take_some(self.free)
            except StoreUnavailable:
                log.debug("jobs_paused")
                await asyncio.sleep(RETRY_S)

    async def _take_some(self, free: int) -> None:
        if free <= 0:
            await asyncio.sleep(RETRY_S)
            return
        for job in await self._store.jobs.take(self.name, min(free, MOST_AT_ONCE), TAKE_BLOCK_MS):
            if self.is_draining:  # since it asked
                self._spawn(self._offering.give_back(job))
                continue
            fence = await self._store.journal.fence(job.match)
            if fence is None or fence.is_retired or fence.owner == self.name:
                await self.open(Estate(job, self.name, fence))  # what else there may be finds its heir

    async def open(self, estate: Estate) -> None:
        """Opens the match's table here, unless it belongs to somebody else."""
        match = estate.job.match
        if self.has(match):
            return
        self._opening.add(match)
        try:
            await self._open(estate)
        except UnknownFormat as unknown:
            self._leave(estate.job, str(unknown))
        finally:
            self._opening.discard(match)

    def _leave(self, job: Job, why: str) -> None:
        """For a referee that knows how to go on with it; until it has been given back it is looked at no more."""
        log.warning("match_of_another_version", match=job.match, why=why)
        leaving = self._leaving[job.match] = asyncio.create_task(self._offering.leave(job))
        leaving.add_done_callback(lambda _: self._leaving.pop(job.match))

    async def _open(self, estate: Estate) -> None:
        lapses = self.lease.lapses
        owned = await self._opening_of.claim(estate)
        if owned is None:
            return
        table = self._table(owned, estate)
        try:
            is_ours = await self._is_ours(table, lapses)
        except StoreUnavailable:
            self._let_go(table)  # the fence says that it is ours, so the next look finds it
            raise
        if is_ours:
            self._start(table, estate, owned)
        else:
            self._let_go(table)

    async def _is_ours(self, table: Table, lapses: int) -> bool:
        """For certain, though we may have been silent since it was claimed."""
        if self.lease.holds() and lapses == self.lease.lapses:
            return True
        return await self._store.journal.confirm(table.name, table.epoch, self.name) is AppendResult.OK

    def _start(self, table: Table, estate: Estate, owned: Owned) -> None:
        log_opened(table, estate)
        self._spawn(self._offering.introduce(table, estate))
        self._loop.call_later(HEARD_S, self._wait_for_lobbies, table.name, table.epoch)
        table.open()
        if owned.void:
            table.void(owned.void)
        else:
            self._spawn(self._heed_abort(table))

    async def _heed_abort(self, table: Table) -> None:
        """Who asked for its end before it was open found nobody to tell; who asks from now on tells us."""
        while not (table.is_closed or table.match.is_over):
            with suppress(StoreUnavailable):
                if await self._store.matches.is_to_be_aborted(table.name):
                    table.void(VoidReason.ABORTED)
                return
            await asyncio.sleep(RETRY_S)

    def _table(self, owned: Owned, estate: Estate) -> Table:
        match, epoch = owned.match, owned.epoch
        told = (self._ended, self._dealt)
        table = Table(match, epoch, self.name, self._journal, self._lag, *told, owned.journal)
        self.tables[table.name] = table
        self._jobs[table.name] = estate.job
        return table

    def _wait_for_lobbies(self, match: str, epoch: int) -> None:
        """Most tables have all their bots by now."""
        table = self.tables.get(match)
        if table and table.epoch == epoch and table.awaited:
            waiting = asyncio.create_task(self._offering.wait_for_lobbies(table))
            self._waits.add(waiting)
            waiting.add_done_callback(self._waits.discard)

    def _dealt(self, table: Table) -> None:
        self._spawn(self._offering.note_running(table))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    # Ends

    def _ended(self, table: Table) -> None:
        """The match's last entry is in the journal, or the match is not ours any more."""
        if table.is_fenced:
            self.streams.cut(table)
        self._spawn(self._reclaim(table) if table.is_forgotten else self._deliver(table))

    async def _reclaim(self, table: Table) -> None:
        """Opens a match anew whose last moves a failover has forgotten: we have them, and write them again."""
        owned: Owned | None = None
        while not self.is_stopping:
            try:
                owned = await self._opening_of.reclaim(table.match.setup, table.epoch)
                job = Job(await self._store.jobs.push(table.name), table.name)
                break
            except StoreUnavailable:
                await asyncio.sleep(RETRY_S)
        if owned is None:
            self._let_go(table)
            return
        estate = Estate(job, self.name, Fence(table.epoch, self.name, is_retired=False))
        self._start(self._table(owned, estate), estate, owned)

    async def _deliver(self, table: Table) -> None:
        """Repeats until it is done: the journal has the result, so nothing can be lost by waiting."""
        setup, job = table.match.setup, self._jobs.get(table.name)
        end: End | None = None
        while job and not table.is_fenced:
            try:
                end = end or end_of(setup, self._flusher.tail_entries(table.name))
                table.tell_end(end.message)
                if await self._delivery.deliver(setup, table.epoch, self.name, end):
                    await self._store.jobs.done(job.job_id)
                    log_end(table, end.message)
                break
            except StoreUnavailable:
                await asyncio.sleep(RETRY_S)
        self._let_go(table)

    def _let_go(self, table: Table) -> None:
        """This table; by now the match may be open again at another one."""
        table.close()
        if self.tables.get(table.name) is table:
            self._flusher.drop_tail(table.name)
            self._jobs.pop(table.name, None)
            self.tables.pop(table.name, None)

    async def _all_answered(self) -> None:
        """What is with the journal is acknowledged before the next owner asks again, if that is soon."""
        until = self._loop.time() + RETRY_S
        while self._loop.time() < until:
            if all(table.is_closed or table.match.is_over for table in self.tables.values()):
                return
            await asyncio.sleep(ANSWER_S)

    async def _fall_silent(self) -> None:
        """What is acknowledged leaves at once; after the farewell not even that may be said."""
        self.streams.wake()
        await asyncio.sleep(ANSWER_S)
        self.lease.give_up()

    # The lease

    def owned(self) -> dict[str, int]:
        """Its matches, with their epochs."""
        return {name: table.epoch for name, table in self.tables.items()}

    def lose(self, match: str, answer: AppendResult) -> None:
        """It is another's, or Redis has forgotten that it is ours: nothing more is said of it at this table."""
        table = self.tables[match]
        if not table.is_closed:
            table.lose(answer)

    def beat_confirmed(self) -> None:
        """Others know that it lives."""
        self._stalled_s = self._lag.notice(self._loop.time())

    def speak_again(self) -> None:
        """The lease holds again: what waits is written, and nobody is charged for our silence."""
        now = self._loop.time()
        silent_s = self.lease.now - self.lease.silent_since
        stalled_s = self._lag.notice(now) - self._stalled_s
        self.store_is_back(min(silent_s, now - self._frozen_until) - stalled_s)
        self.streams.wake()

    def store_is_back(self, gap_s: float) -> None:
        """The clocks of all tables stood still for so long."""
        self._frozen_until = self._loop.time()
        for table in list(self.tables.values()):
            table.thaw(max(0.0, gap_s))

    # Orders

    def obey(self, order: str) -> None:
        """What a gateway asks of this referee; what makes no sense (any more) is passed over."""
        verb, _, match = order.partition(" ")
        log.info("order_obeyed", order=order)
        if verb == "drain":
            self.is_draining = True
        elif verb == "abort" and match in self.tables and match not in self._opening:
            self.tables[match].void(VoidReason.ABORTED)

    async def stop(self) -> None:
        """Hands all matches over: they wait in the store for their next owner, who hears of it at once."""
        self.is_draining = self.is_stopping = True
        for table in list(self.tables.values()):
            table.wind_up()
        for leaving in self._leaving.values():
            leaving.cancel()  # their jobs go to the others with ours
        for waiting in self._waits:
            waiting.cancel()
        await self._all_answered()
        if self._work:
            await asyncio.wait(self._work, timeout=RETRY_S * 4)
        await self._fall_silent()
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await self._store.processes.farewell(self.name)
