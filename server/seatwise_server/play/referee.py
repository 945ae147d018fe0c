"""The referee role: takes match jobs, owns their tables, sees them through to their delivery."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import structlog

from seatwise.codec.offer import encode_offer
from seatwise.v1 import play_service_pb2
from seatwise_referee.ending import VoidReason
from seatwise_referee.journal import decode
from seatwise_referee.match import Match, replay
from seatwise_referee.setup import Setup
from seatwise_server.play.delivery import Delivery, End
from seatwise_server.play.intake import Intake, NotYourSeat
from seatwise_server.play.lag import Lag
from seatwise_server.play.stream import PING_S, PlayStream
from seatwise_server.play.table import Journal, Table
from seatwise_server.refusal import Refusal
from seatwise_server.store import DeathWatch, Store
from seatwise_server.store.errors import FenceLost, MatchRetired, StoreUnavailable
from seatwise_server.store.jobs import Job

TAKE_BLOCK_MS = 1000
MOST_AT_ONCE = 64
BEAT_S = 1.0
LEASE_S = 5.0
RETRY_S = 0.5

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Place:
    """Who this referee is."""

    name: str
    """Unique to this process; the owner in fences."""
    address: str
    """host:port for bots; empty where lobby and referee are one server."""
    most_tables: int


class Referee:
    """One for each process."""

    def __init__(self, place: Place, store: Store, journal: Journal, lag: Lag, delivery: Delivery) -> None:
        self.place = place
        self.tables: dict[str, Table] = {}
        self.intake = Intake(self.tables, self._end_from_store)
        self._store = store
        self._journal = journal
        self._lag = lag
        self._delivery = delivery
        self._streams: dict[str, PlayStream] = {}
        self._jobs: dict[str, Job] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._takes_new = True

    # Streams

    @contextmanager
    def attached(self, stream: PlayStream) -> Iterator[None]:
        """As long as this lasts the stream is the bot's at this referee; an older one is replaced."""
        older = self._streams.get(stream.bot)
        if older:
            older.end(Refusal("REPLACED", "a newer stream of this bot has taken over", bot=stream.bot))
        self._streams[stream.bot] = stream
        try:
            yield
        finally:
            if self._streams.get(stream.bot) is stream:
                del self._streams[stream.bot]
            for table, seat in list(stream.outbox.seats):
                table.leave(seat, stream.outbox)

    async def watch_streams(self) -> None:
        """Measures round trips and ends streams that are not read. Runs until cancelled."""
        while True:
            await asyncio.sleep(PING_S)
            for stream in list(self._streams.values()):
                stream.watch()

    # Jobs

    async def take_jobs(self) -> None:
        """Takes matches as long as there are free tables. Runs until cancelled."""
        while True:
            try:
                await self._open_lost()
                while self._takes_new:
                    await self._take_some(self.place.most_tables - len(self.tables))
            except StoreUnavailable:
                log.debug("jobs_paused")
            await asyncio.sleep(RETRY_S)

    async def _take_some(self, free: int) -> None:
        if free <= 0:
            await asyncio.sleep(RETRY_S)
            return
        for job in await self._store.jobs.take(self.place.name, min(free, MOST_AT_ONCE), TAKE_BLOCK_MS):
            await self.open(job)

    async def _open_lost(self) -> None:
        """Opens matches that are ours although we do not know it: the store went away in between."""
        for job in await self._store.jobs.mine(self.place.name):
            if job.match not in self.tables:
                await self.open(job)

    async def open(self, job: Job) -> None:
        """Makes the match of this job ours: first the fence, then the journal, then its table."""
        meta = await self._store.matches.get(job.match)
        if meta is None or "setup" not in meta.fields:
            log.warning("job_dropped", match=job.match)
            await self._store.jobs.done(job.job_id)
            return
        setup = Setup.from_json(json.loads(meta.fields["setup"]))
        try:
            epoch = await self._claim(job.match)
        except MatchRetired:
            await self._delivery.free_bots(setup)
            await self._store.jobs.done(job.job_id)
            return
        except FenceLost as lost:
            log.info("match_belongs_to_another", match=job.match, owner=lost.owner)
            return
        self._jobs[job.match] = job
        await self._seat(setup, epoch, is_aborted="abort" in meta.fields)

    async def _claim(self, match: str) -> int:
        fence = await self._store.journal.fence(match)
        return await self._store.journal.claim(match, self.place.name, fence.epoch if fence else 0)

    async def _seat(self, setup: Setup, epoch: int, *, is_aborted: bool) -> None:
        entries = [decode(data) for data in await self._store.journal.read(setup.match)]
        table = self._table(replay(setup, entries), epoch)
        if not entries:
            await self._store.matches.set_state(setup.match, epoch, self.place.name, "SEATING")
        log.info("match_opened", match=setup.match, game=setup.game, bots=list(setup.bots), epoch=epoch)
        table.open()
        if is_aborted:
            table.void(VoidReason.ABORTED)
        if not table.match.is_over:
            for seat, bot in enumerate(setup.bots):
                offer = encode_offer(setup, seat, epoch, self.place.address)
                await self._store.seats.put_offer(bot, setup.match, seat, epoch, offer.SerializeToString())

    def _table(self, match: Match, epoch: int) -> Table:
        table = Table(match, epoch, self.place.name, self._journal, self._lag, self._ended, self._dealt)
        self.tables[match.setup.match] = table
        return table

    def _dealt(self, table: Table) -> None:
        self._spawn(self._note_running(table))

    async def _note_running(self, table: Table) -> None:
        """For lists only: whoever reads the journal knows already."""
        with suppress(StoreUnavailable):
            await self._store.matches.set_state(table.name, table.epoch, self.place.name, "RUNNING")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    # Ends

    def _ended(self, table: Table) -> None:
        """The match's last entry is in the journal, or the match is not ours any more."""
        self._spawn(self._deliver(table))

    async def _deliver(self, table: Table) -> None:
        """Repeats until it is done: the journal has the result, so nothing can be lost by waiting."""
        setup = table.match.setup
        end: End | None = None
        while not table.is_fenced:
            try:
                end = end or await self._delivery.read_end(setup)
                table.tell_end(end.message)
                if await self._delivery.deliver(setup, table.epoch, self.place.name, end):
                    await self._store.jobs.done(self._jobs[table.name].job_id)
                    _log_end(table, end.message)
                break
            except StoreUnavailable:
                await asyncio.sleep(RETRY_S)
        self._let_go(table)

    def _let_go(self, table: Table) -> None:
        table.close()
        self._jobs.pop(table.name, None)
        self.tables.pop(table.name, None)

    async def _end_from_store(self, match: str, bot: str, seat: int) -> play_service_pb2.MatchEnded | None:
        meta = await self._store.matches.get(match)
        if meta is None or "setup" not in meta.fields:
            raise NotYourSeat
        bots = Setup.from_json(json.loads(meta.fields["setup"])).bots
        if not (0 <= seat < len(bots) and bots[seat] == bot):
            raise NotYourSeat
        result = meta.fields.get("result")
        return play_service_pb2.MatchEnded.FromString(result) if result else None

    # Other referees

    async def inherit_all(self) -> None:
        """Takes over whatever is pending: nobody else can live, for the store is ours alone."""
        for owner in await self._store.jobs.owners():
            await self._inherit(owner)

    async def beat(self) -> None:
        """Shows that we live, watches who else does, and obeys orders. Runs until cancelled."""
        watch, last_order = DeathWatch(LEASE_S), "0"
        while True:
            try:
                await self._store.processes.beat(self.place.name, self.place.address)
                await self._look_for_dead(watch)
                last_order = await self._obey(last_order)
            except StoreUnavailable:
                log.debug("heartbeat_missed")
            await asyncio.sleep(BEAT_S)

    async def _look_for_dead(self, watch: DeathWatch) -> None:
        owners = (await self._store.jobs.owners()).keys() - {self.place.name}
        asked = time.monotonic()
        beats = await self._store.processes.heartbeats()
        watch.observe(asked, time.monotonic(), beats, owners)
        for dead in watch.dead() & owners:
            await self._inherit(dead)

    async def _inherit(self, dead: str) -> None:
        for job in await self._store.jobs.claim_from(dead, self.place.name):
            log.warning("match_taken_over", match=job.match, dead=dead)
            await self.open(job)

    async def _obey(self, last_order: str) -> str:
        for order in await self._store.processes.orders(self.place.name, last_order):
            verb, _, match = order.order.decode().partition(" ")
            if verb == "abort" and match in self.tables:
                self.tables[match].void(VoidReason.ABORTED)
            last_order = order.order_id
        return last_order

    # The house

    def store_is_back(self, gap_s: float) -> None:
        """The clocks of all tables stood still for so long."""
        for table in list(self.tables.values()):
            table.thaw(gap_s)

    async def stop(self) -> None:
        """Takes no more matches and lets go of those it has: they wait in the store for the next owner."""
        self._takes_new = False
        for table in list(self.tables.values()):
            table.close()
        if self._work:
            await asyncio.wait(self._work, timeout=RETRY_S * 4)
        with suppress(StoreUnavailable):
            await self._store.processes.farewell(self.place.name)


def _log_end(table: Table, end: play_service_pb2.MatchEnded) -> None:
    """The canonical line of a match."""
    log.info(
        "match_finished" if end.HasField("result") else "match_voided",
        match=table.name,
        game=table.match.setup.game,
        bots=list(table.match.setup.bots),
        points=list(end.result.points),
        ranks=list(end.result.ranks),
        endings=[str(seat.left.ending) if seat.left else "COMPLETED" for seat in table.match.position.seats],
        reason=end.void_reason,
        entries=table.match.position.seq,
        took_ms=table.match.position.at_ms,
        epoch=table.epoch,
    )
