"""The open tables of a referee, each from the claim of its match to the delivery."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

import structlog

from seatwise.v1 import play_service_pb2
from seatwise_referee.ending import MatchState, VoidReason
from seatwise_server.background_tasks import BackgroundTasks
from seatwise_server.counts import COUNTS
from seatwise_server.game_choice import kind_of_game
from seatwise_server.play.delivery import MatchEnd, end_of
from seatwise_server.play.lease import STORE_RETRY_S, Lease, LeasedJournal
from seatwise_server.play.match_claims import MatchClaims, OwnedMatch, UnownedMatch
from seatwise_server.play.match_clock import EventLoopLag, TransportLag
from seatwise_server.play.play_stream import PlayStreams
from seatwise_server.play.seat_offers import LOBBY_LOOK_S, SeatOffers
from seatwise_server.play.table import Table
from seatwise_server.store import AppendResult, Fence
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.jobs import Job

log = structlog.get_logger()

ANSWER_S = 0.01
"""About as long as the journal takes to answer, in seconds."""


class OpenTables:
    """The open tables of one referee, with the jobs of their matches, and its right to send messages for them."""

    def __init__(
        self,
        claims: MatchClaims,
        offers: SeatOffers,
        lease: Lease,
        lag: EventLoopLag,
        transport_lag: TransportLag,
        streams: PlayStreams,
    ) -> None:
        self.tables: dict[str, Table] = {}
        self.work = offers.work
        """Tasks that must finish before this referee stops."""
        self.is_stopping = False
        self._optional_work = BackgroundTasks()
        """Tasks that need not finish."""
        self._jobs: dict[str, Job] = {}
        self._claims = claims
        self._store, self._flusher, self._delivery = claims.store, claims.flusher, claims.delivery
        self._offers = offers
        self._lease = lease
        self._journal = LeasedJournal(claims.flusher, lease)
        self._lag = lag
        self._transport_lag = transport_lag
        self._streams = streams
        self._loop = asyncio.get_running_loop()
        self._resumed_at = self._loop.time()
        """Outages of the store up to this time were already taken off all charges."""

    def add_table(self, owned: OwnedMatch, unowned: UnownedMatch) -> Table:
        """Add a table for a match that was just claimed. Its clocks do not run yet."""
        table = Table(
            owned.match,
            owned.epoch,
            self._claims.owner,
            self._journal,
            self._lag,
            self._on_match_over,
            self._offers.on_dealt,
            owned.journal,
            self._offers.on_sit if owned.is_queued else None,
            self._transport_lag,
        )
        self.tables[table.name] = table
        self._jobs[table.name] = unowned.job
        return table

    def start_table(self, table: Table, unowned: UnownedMatch, owned: OwnedMatch) -> None:
        """Start the clocks of a table, and offer its seats to the bots."""
        log_opened(table, unowned)
        self.work.start_task(
            self._offers.offer_new_owner(table, unowned, is_listed=owned.is_listed_as_seating)
        )
        self._loop.call_later(LOBBY_LOOK_S, self._wait_for_lobbies, table.name, table.epoch)
        table.start_clocks()
        if owned.void:
            table.void_match(owned.void)
        else:
            self.work.start_task(self._check_abort(table))

    def release_table(self, table: Table) -> None:
        """Remove this table; by now the match may be open again at another table."""
        table.close_table()
        if self.tables.get(table.name) is table:
            self._flusher.drop_tail(table.name)
            self._jobs.pop(table.name, None)
            self.tables.pop(table.name, None)

    def owned_matches(self) -> dict[str, int]:
        """Return the matches that are open here, with their epochs."""
        return {name: table.epoch for name, table in self.tables.items()}

    def lose_match(self, match: str, answer: AppendResult) -> None:
        """Give up a match that belongs to another owner, or that Redis has forgotten: nothing more is sent for it."""
        table = self.tables[match]
        if not table.is_closed:
            table.lose_ownership(answer)

    def on_lease_regained(self) -> None:
        """Write what waits. The time in which this referee was silent is charged to no bot."""
        silent_s = self._lease.now - self._lease.silent_since
        self.on_store_back(min(silent_s, self._loop.time() - self._resumed_at))
        self._streams.wake_writers()

    def on_store_back(self, gap_s: float) -> None:
        """Take an outage of the store off the clocks of all tables."""
        self._resumed_at = self._loop.time()
        for table in list(self.tables.values()):
            table.resume_after_gap(max(0.0, gap_s))

    async def stop_tables(self) -> None:
        """Stop all matches here, and wait a short time for the work that must finish."""
        self.is_stopping = True
        for table in list(self.tables.values()):
            table.stop_accepting()
        self._optional_work.request_cancel()
        await self._wait_for_journal()
        await self.work.wait_for_all(STORE_RETRY_S * 4)

    async def _wait_for_journal(self) -> None:
        """Wait a short time for the journal's answers, so that its entries are acknowledged before the next owner reads them."""
        until = self._loop.time() + STORE_RETRY_S
        while self._loop.time() < until:
            if all(table.is_closed or table.match.is_over for table in self.tables.values()):
                return
            await asyncio.sleep(ANSWER_S)

    async def _check_abort(self, table: Table) -> None:
        """Void the match if that was requested before it was open. Later requests arrive as orders."""
        while not (table.is_closed or table.match.is_over):
            with suppress(StoreUnavailable):
                if await self._store.matches.is_to_be_aborted(table.name):
                    table.void_match(VoidReason.ABORTED)
                return
            await asyncio.sleep(STORE_RETRY_S)

    def _wait_for_lobbies(self, match: str, epoch: int) -> None:
        """Start to wait for lobbies if bots are missing; most tables have all their bots by now."""
        table = self.tables.get(match)
        if table and table.epoch == epoch and table.awaited_bots:
            self._optional_work.start_task(self._offers.wait_for_lobbies(table))

    def _on_match_over(self, table: Table) -> None:
        """Called when the match's last entry is in the journal, or when the match is not ours any more."""
        if table.is_fenced:
            self._streams.cut_streams(table)
        self.work.start_task(self._reclaim_match(table) if table.is_forgotten else self._deliver_match(table))

    async def _reclaim_match(self, table: Table) -> None:
        """Open a match again whose last moves a failover has forgotten: this process has them, and writes them again."""
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
            self.release_table(table)
            return
        fence = Fence(table.epoch, self._claims.owner, is_retired=False)
        unowned = UnownedMatch(job, self._claims.owner, fence)
        self.start_table(self.add_table(owned, unowned), unowned, owned)

    async def _deliver_match(self, table: Table) -> None:
        """Deliver the match, and retries until it is done: the journal has the result, so waiting loses nothing.

        The bots are told when the record is stored: a bot that is told of the end can read the record.
        """
        setup, job = table.match.setup, self._jobs.get(table.name)
        end: MatchEnd | None = None
        while job and not table.is_fenced:
            try:
                end = end or end_of(setup, self._flusher.tail_entries(table.name))
                announce = partial(table.updates.announce_end, end.message)
                if await self._delivery.deliver_match(setup, table.epoch, self._claims.owner, end, announce):
                    await self._store.jobs.finish_job(job.job_id)
                    log_end(table, end.message)
                elif not table.is_fenced:
                    self._streams.cut_streams(table)  # another referee has the match, and tells its bots
                break
            except StoreUnavailable:
                await asyncio.sleep(STORE_RETRY_S)
        self.release_table(table)


def log_opened(table: Table, unowned: UnownedMatch) -> None:
    """Log that a new match was opened, or that the match of a dead owner was taken over."""
    before = unowned.fence.owner if unowned.fence else ""
    event = "match_taken_over" if before else "match_opened"
    COUNTS.takeovers += bool(before)
    setup = table.match.setup
    log.info(event, match=table.name, game=setup.game, bots=list(setup.bots), epoch=table.epoch, dead=before)


def log_end(table: Table, end: play_service_pb2.MatchEnded) -> None:
    """Log the end of a match."""
    COUNTS.ended[end.void_reason or MatchState.FINISHED] += 1
    log.info(
        "match_finished" if end.HasField("result") else "match_voided",
        match=table.name,
        game=table.match.setup.game,
        bots=list(table.match.setup.bots),
        **_told_of_result(table, end),
        reason=end.void_reason,
        entries=table.match.position.seq,
        took_ms=table.match.position.at_ms,
        epoch=table.epoch,
    )


def _told_of_result(table: Table, end: play_service_pb2.MatchEnded) -> dict[str, Any]:
    """Points, ranks and endings. For a match of a deal set only the set, because others may still play the same deals."""
    place = table.match.setup.deal_set
    if place and end.HasField("result"):
        return {"deal_set": place.name, "result": "withheld"}
    return {
        "points": list(end.result.points),
        "ranks": list(end.result.ranks),
        "endings": [str(seat.ending) for seat in table.match.position.seats],
    }
