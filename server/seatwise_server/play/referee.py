"""The referee role: takes jobs while there are free tables, claims their matches, and plays them until they are delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress

import structlog

from seatwise_referee.ending import VoidReason
from seatwise_server.background_tasks import gather_limited
from seatwise_server.game_choice import GameKind
from seatwise_server.play.allowance import DistanceMeters
from seatwise_server.play.delivery import Delivery
from seatwise_server.play.inbound import InboundItems
from seatwise_server.play.lease import STORE_RETRY_S, Lease
from seatwise_server.play.match_claims import MatchClaims, UnknownFormat, UnownedMatch
from seatwise_server.play.match_clock import EventLoopLag, TransportLag
from seatwise_server.play.open_tables import ANSWER_S, OpenTables
from seatwise_server.play.play_stream import PlayStreams
from seatwise_server.play.seat_offers import RefereeIdentity, SeatOffers
from seatwise_server.play.table import Table
from seatwise_server.store import AppendResult, Flusher, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.jobs import Job
from seatwise_server.timings import REFEREE_HEARTBEAT_S

BEAT_RETRY_S = 0.2
ORDERS_BLOCK_MS = 1000
CONFIRMATIONS_AT_ONCE = 64
"""The most fences that are confirmed at the same time."""
DEREGISTER_TIMEOUT_S = 1.0
"""The longest time to deregister at the store when this referee stops, in seconds; the store may be gone."""

TAKE_BLOCK_MS = 1000
MOST_AT_ONCE = 64

log = structlog.get_logger()


class Referee:
    """The referee of one process."""

    def __init__(
        self,
        place: RefereeIdentity,
        store: Store,
        flusher: Flusher,
        lag: EventLoopLag,
        delivery: Delivery,
        proxies: Collection[str] = (),
    ) -> None:
        """`proxies` are addresses or networks of proxies, behind which bots may be at any distance."""
        self.place = place
        self.lease = Lease(asyncio.get_running_loop().time)
        self.streams = PlayStreams()
        self.meters = DistanceMeters(proxies)
        self.transport_lag = TransportLag(lag)
        """How far gRPC is behind, as far as somebody measures it."""
        self._store = store
        self.is_draining = False
        """Whether it takes no new matches."""
        self._opening: set[str] = set()
        self._leaving: dict[str, asyncio.Task[None]] = {}
        """Matches of another version, whose jobs are about to be given back."""
        self._claims = MatchClaims(place.name, store, flusher, delivery)
        self._offers = SeatOffers(place, store, flusher)
        self.open_tables = OpenTables(
            self._claims, self._offers, self.lease, lag, self.transport_lag, self.streams
        )
        self.tables = self.open_tables.tables
        self.intake = InboundItems(self.tables, delivery.end_for)

    @property
    def name(self) -> str:
        """The name of this referee, unique to this process."""
        return self.place.name

    @property
    def game_kinds(self) -> Sequence[GameKind]:
        """The kinds of games that it plays."""
        return self.place.games.kinds

    @property
    def free_tables(self) -> int:
        """The number of further matches that it takes."""
        taken = len(self.tables) + len(self._opening)
        return 0 if self.is_draining else max(0, self.place.most_tables - taken)

    @property
    def open_matches(self) -> int:
        """The number of matches that are open here, or about to be."""
        return len(self.tables.keys() | self._opening)

    def has_match(self, match: str) -> bool:
        """Whether the match is open here, or about to be, or cannot be opened here."""
        return match in self.tables or match in self._opening or match in self._leaving

    def obey_order(self, order: str) -> None:
        """Execute an order of a gateway; one that does not apply (any more) is ignored."""
        verb, _, match = order.partition(" ")
        log.info("order_executed", order=order)
        if verb == "drain":
            self.is_draining = True
        elif verb == "abort" and match in self.tables and match not in self._opening:
            self.tables[match].void_match(VoidReason.ABORTED)

    def on_shortage(self, ms: int, *, is_own: bool) -> None:
        """In the last `ms` no bot could connect here: those that are not connected are waited for, or their match is void.

        `is_own` is whether no bot can have brought that about.
        """
        for table in list(self.tables.values()):
            if shut_out := table.wait_for_absent(ms):
                self._offers.work.start_task(self._offers.void_without(table, shut_out, is_own=is_own))

    # Matches that are taken

    async def take_jobs(self) -> None:
        """Take matches as long as there are free tables. Runs until cancelled."""
        while True:
            try:
                await self._take_jobs_once(self.free_tables)
            except StoreUnavailable:
                log.debug("jobs_paused")
                await asyncio.sleep(STORE_RETRY_S)

    async def open_match(self, unowned: UnownedMatch) -> None:
        """Open the match's table here, unless the match belongs to another owner."""
        match = unowned.job.match
        if self.has_match(match):
            return
        self._opening.add(match)
        try:
            await self._claim_and_open(unowned)
        except UnknownFormat as unknown:
            log.warning("match_of_another_version", match=match, why=str(unknown))
            # Another referee can play it. Until its job was given back, it is ignored here.
            leaving = asyncio.create_task(self._offers.give_back_later(unowned.job))
            self._leaving[match] = leaving
            leaving.add_done_callback(lambda _: self._leaving.pop(match))
        finally:
            self._opening.discard(match)

    async def _take_jobs_once(self, free: int) -> None:
        if free <= 0:
            await asyncio.sleep(STORE_RETRY_S)
            return
        most = min(free, MOST_AT_ONCE)
        jobs = await self._store.jobs.take_jobs(self.name, most, TAKE_BLOCK_MS, self.game_kinds)
        await gather_limited(self._open_job(job) for job in jobs)

    async def _open_job(self, job: Job) -> None:
        """Open the match of a job. Many jobs are opened at a time, so that they share their messages to the store."""
        if self.is_draining:  # an order to drain came while it asked
            self.open_tables.work.start_task(self._offers.give_back(job))
            return
        read_fence, get_meta = self._store.journal.read_fence, self._store.matches.get_meta
        fence, meta = await asyncio.gather(read_fence(job.match), get_meta(job.match))
        if fence is None or fence.is_retired or fence.owner == self.name:
            await self.open_match(UnownedMatch(job, self.name, fence, meta=meta))  # takeovers find the others

    async def _claim_and_open(self, unowned: UnownedMatch) -> None:
        lapses = self.lease.lapses
        owned = await self._claims.claim_match(unowned)
        if owned is None:
            return
        table = self.open_tables.add_table(owned, unowned)
        try:
            is_ours = await self._is_ours(table, lapses)
        except StoreUnavailable:
            self.open_tables.release_table(table)  # the fence names this referee, so the next check finds it
            raise
        if is_ours:
            self.open_tables.start_table(table, unowned, owned)
        else:
            self.open_tables.release_table(table)

    async def _is_ours(self, table: Table, lapses: int) -> bool:
        """Confirm that the match is ours, because the lease may have lapsed since it was claimed."""
        if self.lease.holds() and lapses == self.lease.lapses:
            return True
        journal = self._store.journal
        return await journal.confirm_fence(table.name, table.epoch, self.name) is AppendResult.OK

    # The end

    async def hand_over_matches(self) -> None:
        """Hand all matches over: they wait in the store for their next owner, which is notified at once."""
        self.is_draining = True
        for leaving in self._leaving.values():
            leaving.cancel()  # their jobs go to other referees with those of this one
        await self.open_tables.stop_tables()
        # Send all acknowledged entries at once; after the lease is given up even they may not be sent.
        self.streams.wake_writers()
        await asyncio.sleep(ANSWER_S)
        self.lease.give_up()
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(DEREGISTER_TIMEOUT_S):
                await self._store.processes.deregister_process(self.name)


class HeartbeatSender:
    """Sends the heartbeats of one referee process."""

    def __init__(self, referee: Referee, store: Store) -> None:
        self._referee = referee
        self._tables = referee.open_tables
        self._store = store
        self._lease = referee.lease
        self._regaining: asyncio.Task[None] | None = None

    async def run_heartbeat(self) -> None:
        """Send a heartbeat every second. Runs until cancelled."""
        try:
            while True:
                began = self._lease.now
                await self.send_heartbeat()
                await asyncio.sleep(max(BEAT_RETRY_S, REFEREE_HEARTBEAT_S - (self._lease.now - began)))
        finally:
            if self._regaining:
                self._regaining.cancel()

    async def send_heartbeat(self) -> None:
        """Send one heartbeat. If the lease was lost, starts to confirm all matches, after which it holds again."""
        referee, sent = self._referee, self._lease.now
        try:
            await self._store.processes.write_heartbeat(
                referee.name,
                referee.place.address,
                len(referee.tables),
                referee.free_tables,
                is_draining=referee.is_draining,
                kinds=referee.game_kinds,
            )
        except StoreUnavailable:
            log.debug("heartbeat_missed")
            return
        self._lease.note_confirmed(sent)
        if not self._lease.holds() and (self._regaining is None or self._regaining.done()):
            self._regaining = asyncio.create_task(self._regain())

    async def _regain(self) -> None:
        """Confirm every match, also those opened meanwhile, and then renew the lease."""
        breaks, sure = self._lease.breaks, set[tuple[str, int]]()
        try:
            while unsure := self._tables.owned_matches().items() - sure:
                await self._confirm_fences(unsure)
                sure |= unsure
        except StoreUnavailable:
            return  # the next heartbeat tries again
        if breaks == self._lease.breaks and self._lease.renew_lease():
            log.info("match_lease_taken", matches=len(self._tables.owned_matches()))
            self._tables.on_lease_regained()

    async def _confirm_fences(self, matches: set[tuple[str, int]]) -> None:
        turn = asyncio.Semaphore(CONFIRMATIONS_AT_ONCE)

        async def ask(match: str, epoch: int) -> None:
            async with turn:
                answer = await self._store.journal.confirm_fence(match, epoch, self._referee.name)
            if not answer.is_kept and self._tables.owned_matches().get(match) == epoch:
                self._tables.lose_match(match, answer)

        await asyncio.gather(*[ask(*each) for each in matches])

    async def listen_for_orders(self) -> None:
        """Execute orders as they come. Runs until cancelled."""
        read_orders, name, last = self._store.processes.read_orders, self._referee.name, "0"
        while True:
            try:
                for order in await read_orders(name, last, ORDERS_BLOCK_MS):
                    self._referee.obey_order(order.order.decode())
                    last = order.order_id
            except StoreUnavailable:
                await asyncio.sleep(REFEREE_HEARTBEAT_S)
