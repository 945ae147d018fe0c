"""The referee role: takes match jobs, owns the tables of their matches, and plays them until they are delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import structlog

from seatwise_referee.ending import VoidReason
from seatwise_server.background_tasks import BackgroundTasks
from seatwise_server.game_choice import GameChoice, GameKind, kind_of_game
from seatwise_server.play.command_queue import MatchJournal
from seatwise_server.play.delivery import Delivery, MatchEnd, end_of
from seatwise_server.play.distance_meter import DistanceMeters
from seatwise_server.play.inbound import InboundItems
from seatwise_server.play.lag import EventLoopLag
from seatwise_server.play.lease import STORE_RETRY_S, Lease
from seatwise_server.play.match_claims import MatchClaims, NotPlayedHere, OwnedMatch, UnknownFormat
from seatwise_server.play.match_logging import log_end, log_opened
from seatwise_server.play.match_ownership import MatchOwnership
from seatwise_server.play.no_shows import NoShowNotes, find_missed_seats
from seatwise_server.play.seat_offers import LOBBY_LOOK_S, SeatOffers
from seatwise_server.play.stream_registry import PlayStreams
from seatwise_server.play.table import Table
from seatwise_server.play.takeover import UnownedMatch
from seatwise_server.play.transport_lag import TransportLag
from seatwise_server.store import AppendResult, Fence, Flusher, SeatOf, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.jobs import Job
from seatwise_server.together import gather_limited

TAKE_BLOCK_MS = 1000
MOST_AT_ONCE = 64
DEREGISTER_TIMEOUT_S = 1.0
"""The longest time to deregister at the store when this referee stops, in seconds; the store may be gone."""
GATHER_SITS_S = 0.05
"""The time for which seats that bots take are collected, in seconds."""
ANSWER_S = 0.01
"""About as long as the journal takes to answer, in seconds."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RefereeIdentity:
    """The identity of this referee."""

    name: str
    """Unique to this process; the owner in fences."""
    address: str
    """host:port for bots; empty if lobby and referee are one server."""
    most_tables: int
    ws_address: str = ""
    """ws://host:port for bots that come by WebSocket; empty as `address`, or where there is no such port."""
    games: GameChoice = GameChoice.ALL


class LeasedJournal:
    """The journal, which counts as away while the lease does not hold, so that no bot's time runs out then."""

    def __init__(self, journal: MatchJournal, lease: Lease) -> None:
        self._journal = journal
        self._lease = lease
        self.append_entries = journal.append_entries

    @property
    def healthy(self) -> bool:
        """See `MatchJournal`."""
        return self._journal.healthy and self._lease.holds()


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
        self.is_draining = False
        """Whether it takes no new matches."""
        self.is_stopping = False
        self._loop = asyncio.get_running_loop()
        self.lease = Lease(self._loop.time)
        self.streams = PlayStreams()
        self.meters = DistanceMeters(proxies)
        self.tables: dict[str, Table] = {}
        self.intake = InboundItems(self.tables, delivery.end_for)
        self._store = store
        self._flusher = flusher
        self._journal = LeasedJournal(flusher, self.lease)
        self._lag = lag
        self.transport_lag = TransportLag(lag)
        """How far gRPC is behind, as far as somebody measures it."""
        self._delivery = delivery
        self._jobs: dict[str, Job] = {}
        self._opening: set[str] = set()
        self._leaving: dict[str, asyncio.Task[None]] = {}
        """Matches of another version, whose jobs are about to be given back."""
        self._claims = MatchClaims(place.name, store, flusher, delivery, place.games)
        self._offers = SeatOffers(place.name, place.address, store, place.ws_address)
        self._taken: list[tuple[str, SeatOf]] = []
        """Bots that have just sat down in a seat of a queue, which is not noted yet."""
        self._work = BackgroundTasks()
        """Tasks that must finish before this referee stops."""
        self._optional_work = BackgroundTasks()
        """Tasks that need not finish."""
        self.ownership = MatchOwnership(self.tables, self.streams, self.lease)

    @property
    def name(self) -> str:
        """The name of this referee, unique to this process."""
        return self.place.name

    @property
    def address(self) -> str:
        """The address at which bots reach it."""
        return self.place.address

    @property
    def game_kinds(self) -> Sequence[GameKind]:
        """The kinds of games that it plays."""
        return self.place.games.kinds

    # Matches

    @property
    def free_tables(self) -> int:
        """The number of further matches that it takes."""
        return (
            0 if self.is_draining else max(0, self.place.most_tables - len(self.tables) - len(self._opening))
        )

    @property
    def open_matches(self) -> int:
        """The number of matches that are open here, or about to be."""
        return len(self.tables.keys() | self._opening)

    def has_match(self, match: str) -> bool:
        """Whether the match is open here, or about to be, or cannot be opened here."""
        return match in self.tables or match in self._opening or match in self._leaving

    async def take_jobs(self) -> None:
        """Takes matches as long as there are free tables. Runs until cancelled."""
        while True:
            try:
                await self._take_jobs_once(self.free_tables)
            except StoreUnavailable:
                log.debug("jobs_paused")
                await asyncio.sleep(STORE_RETRY_S)

    async def _take_jobs_once(self, free: int) -> None:
        if free <= 0:
            await asyncio.sleep(STORE_RETRY_S)
            return
        most = min(free, MOST_AT_ONCE)
        jobs = await self._store.jobs.take_jobs(self.name, most, TAKE_BLOCK_MS, self.game_kinds)
        await gather_limited(self._open_job(job) for job in jobs)

    async def _open_job(self, job: Job) -> None:
        """Opens the match of a job. Many jobs are opened at a time, so that they share their messages to the store."""
        if self.is_draining:  # an order to drain came while it asked
            self._work.start_task(self._offers.give_back(job))
            return
        fence, meta = await asyncio.gather(
            self._store.journal.read_fence(job.match), self._store.matches.get_meta(job.match)
        )
        if fence is None or fence.is_retired or fence.owner == self.name:
            await self.open_match(UnownedMatch(job, self.name, fence, meta=meta))  # takeovers find the others

    async def open_match(self, unowned: UnownedMatch) -> None:
        """Opens the match's table here, unless the match belongs to another owner."""
        match = unowned.job.match
        if self.has_match(match):
            return
        self._opening.add(match)
        try:
            await self._claim_and_open(unowned)
        except UnknownFormat as unknown:
            log.warning("match_of_another_version", match=match, why=str(unknown))
            self._leave_to_others(unowned.job, self._offers.give_back_later(unowned.job))
        except NotPlayedHere as other:
            log.debug("job_of_other_games", match=match, why=str(other))
            self._leave_to_others(unowned.job, self._offers.give_back(unowned.job, other.kind))
        finally:
            self._opening.discard(match)

    def _leave_to_others(self, job: Job, giving_back: Coroutine[None, None, None]) -> None:
        """Leaves a match to a referee that can play it. Until its job was given back, it is ignored here."""
        leaving = self._leaving[job.match] = asyncio.create_task(giving_back)
        leaving.add_done_callback(lambda _: self._leaving.pop(job.match))

    async def _claim_and_open(self, unowned: UnownedMatch) -> None:
        lapses = self.lease.lapses
        owned = await self._claims.claim_match(unowned)
        if owned is None:
            return
        table = self._new_table(owned, unowned)
        try:
            is_ours = await self._is_ours(table, lapses)
        except StoreUnavailable:
            self._release_table(table)  # the fence names this referee, so the next check finds it
            raise
        if is_ours:
            self._start_table(table, unowned, owned)
        else:
            self._release_table(table)

    async def _is_ours(self, table: Table, lapses: int) -> bool:
        """Confirms that the match is ours, because the lease may have lapsed since it was claimed."""
        if self.lease.holds() and lapses == self.lease.lapses:
            return True
        return await self._store.journal.confirm_fence(table.name, table.epoch, self.name) is AppendResult.OK

    def _start_table(self, table: Table, unowned: UnownedMatch, owned: OwnedMatch) -> None:
        log_opened(table, unowned)
        self._work.start_task(
            self._offers.offer_new_owner(table, unowned, is_listed=owned.is_listed_as_seating)
        )
        self._loop.call_later(LOBBY_LOOK_S, self._wait_for_lobbies, table.name, table.epoch)
        table.start_clocks()
        if owned.void:
            table.void_match(owned.void)
        else:
            self._work.start_task(self._check_abort(table))

    async def _check_abort(self, table: Table) -> None:
        """Voids the match if that was requested before it was open. Later requests arrive as orders."""
        while not (table.is_closed or table.match.is_over):
            with suppress(StoreUnavailable):
                if await self._store.matches.is_to_be_aborted(table.name):
                    table.void_match(VoidReason.ABORTED)
                return
            await asyncio.sleep(STORE_RETRY_S)

    def _new_table(self, owned: OwnedMatch, unowned: UnownedMatch) -> Table:
        match, epoch = owned.match, owned.epoch
        told = (self._on_match_over, self._on_dealt)
        on_sit = self._on_sit if owned.is_queued else None
        table = Table(
            match,
            epoch,
            self.name,
            self._journal,
            self._lag,
            *told,
            owned.journal,
            on_sit,
            self.transport_lag,
        )
        self.tables[table.name] = table
        self._jobs[table.name] = unowned.job
        return table

    def _wait_for_lobbies(self, match: str, epoch: int) -> None:
        """Starts to wait for lobbies if bots are missing; most tables have all their bots by now."""
        table = self.tables.get(match)
        if table and table.epoch == epoch and table.awaited_bots:
            self._optional_work.start_task(self._offers.wait_for_lobbies(table))

    def _on_sit(self, table: Table, seat: int) -> None:
        if not self._taken:
            self._work.start_task(self._note_taken())
        self._taken.append((table.match.setup.bots[seat], SeatOf(table.name, seat)))

    async def _note_taken(self) -> None:
        """Notes the seats that bots take within a short time in one message; most bots of a match sit down together."""
        await asyncio.sleep(GATHER_SITS_S)
        taken, self._taken = self._taken, []
        await self._offers.note_taken(taken)

    def _on_dealt(self, table: Table) -> None:
        self._work.start_task(self._offers.note_running(table))
        if any(not own.has_sat for own in table.match.position.seats):
            self._work.start_task(self._note_absence(table))

    async def _note_absence(self, table: Table) -> None:
        """Notes absent bots at once; the delivery repeats it, in case this fails."""
        setup = table.match.setup
        with suppress(StoreUnavailable):
            absence = find_missed_seats(setup, self._flusher.tail_entries(table.name))
            await NoShowNotes(self._store).note_absence(setup, absence)

    # Ends

    def _on_match_over(self, table: Table) -> None:
        """Called when the match's last entry is in the journal, or when the match is not ours any more."""
        if table.is_fenced:
            self.streams.cut_streams(table)
        self._work.start_task(
            self._reclaim_match(table) if table.is_forgotten else self._deliver_match(table)
        )

    async def _reclaim_match(self, table: Table) -> None:
        """Opens a match again whose last moves a failover has forgotten: this process has them, and writes them again."""
        owned: OwnedMatch | None = None
        while not self.is_stopping:
            try:
                owned = await self._claims.reclaim_match(table.match.setup, table.epoch)
                kind = kind_of_game(table.match.setup.game)
                job = Job(await self._store.jobs.push_job(table.name, kind=kind), table.name)
                break
            except StoreUnavailable:
                await asyncio.sleep(STORE_RETRY_S)
        if owned is None:
            self._release_table(table)
            return
        unowned = UnownedMatch(job, self.name, Fence(table.epoch, self.name, is_retired=False))
        self._start_table(self._new_table(owned, unowned), unowned, owned)

    async def _deliver_match(self, table: Table) -> None:
        """Delivers the match, and retries until it is done: the journal has the result, so waiting loses nothing.

        The bots are told when the record is stored: a bot that is told of the end can read the record.
        """
        setup, job = table.match.setup, self._jobs.get(table.name)
        end: MatchEnd | None = None
        while job and not table.is_fenced:
            try:
                end = end or end_of(setup, self._flusher.tail_entries(table.name))
                announce = partial(table.updates.announce_end, end.message)
                if await self._delivery.deliver_match(setup, table.epoch, self.name, end, announce):
                    await self._store.jobs.finish_job(job.job_id)
                    log_end(table, end.message)
                break
            except StoreUnavailable:
                await asyncio.sleep(STORE_RETRY_S)
        self._release_table(table)

    def _release_table(self, table: Table) -> None:
        """Removes this table; by now the match may be open again at another table."""
        table.close_table()
        if self.tables.get(table.name) is table:
            self._flusher.drop_tail(table.name)
            self._jobs.pop(table.name, None)
            self.tables.pop(table.name, None)

    async def _wait_for_journal(self) -> None:
        """Waits a short time for the journal's answers, so that its entries are acknowledged before the next
        owner reads them.
        """
        until = self._loop.time() + STORE_RETRY_S
        while self._loop.time() < until:
            if all(table.is_closed or table.match.is_over for table in self.tables.values()):
                return
            await asyncio.sleep(ANSWER_S)

    async def _stop_speaking(self) -> None:
        """Sends all acknowledged entries at once; after the lease is given up even they may not be sent."""
        self.streams.wake_writers()
        await asyncio.sleep(ANSWER_S)
        self.lease.give_up()

    # Orders

    def obey_order(self, order: str) -> None:
        """Executes an order of a gateway; one that does not apply (any more) is ignored."""
        verb, _, match = order.partition(" ")
        log.info("order_executed", order=order)
        if verb == "drain":
            self.is_draining = True
        elif verb == "abort" and match in self.tables and match not in self._opening:
            self.tables[match].void_match(VoidReason.ABORTED)

    async def hand_over_matches(self) -> None:
        """Hands all matches over: they wait in the store for their next owner, which is notified at once."""
        self.is_draining = self.is_stopping = True
        for table in list(self.tables.values()):
            table.stop_accepting()
        for leaving in self._leaving.values():
            leaving.cancel()  # their jobs go to other referees with ours
        self._optional_work.request_cancel()
        await self._wait_for_journal()
        await self._work.wait_for_all(STORE_RETRY_S * 4)
        await self._stop_speaking()
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(DEREGISTER_TIMEOUT_S):
                await self._store.processes.deregister_process(self.name)
