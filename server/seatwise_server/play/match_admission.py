"""Admits matches to a referee: takes jobs while there are free tables, claims their matches, and opens tables."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence

import structlog

from seatwise_server.game_choice import GameKind
from seatwise_server.play.lease import STORE_RETRY_S, Lease
from seatwise_server.play.match_claims import MatchClaims, NotPlayedHere, UnknownFormat
from seatwise_server.play.open_tables import OpenTables
from seatwise_server.play.seat_offers import SeatOffers
from seatwise_server.play.table import Table
from seatwise_server.play.takeover import UnownedMatch
from seatwise_server.store import AppendResult
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.jobs import Job
from seatwise_server.together import gather_limited

TAKE_BLOCK_MS = 1000
MOST_AT_ONCE = 64

log = structlog.get_logger()


class MatchAdmission:
    """The admission of new matches to one referee; the `TakeoverHost` of its takeovers."""

    def __init__(
        self, claims: MatchClaims, offers: SeatOffers, lease: Lease, open_tables: OpenTables, most_tables: int
    ) -> None:
        self.is_draining = False
        """Whether it takes no new matches."""
        self._claims = claims
        self._offers = offers
        self._lease = lease
        self._open_tables = open_tables
        self._most_tables = most_tables
        self._opening: set[str] = set()
        self._leaving: dict[str, asyncio.Task[None]] = {}
        """Matches of another version, whose jobs are about to be given back."""

    @property
    def name(self) -> str:
        """The name of this referee, unique to this process."""
        return self._claims.owner

    @property
    def game_kinds(self) -> Sequence[GameKind]:
        """The kinds of games that it plays."""
        return self._claims.games.kinds

    @property
    def free_tables(self) -> int:
        """The number of further matches that it takes."""
        taken = len(self._open_tables.tables) + len(self._opening)
        return 0 if self.is_draining else max(0, self._most_tables - taken)

    @property
    def open_matches(self) -> int:
        """The number of matches that are open here, or about to be."""
        return len(self._open_tables.tables.keys() | self._opening)

    def has_match(self, match: str) -> bool:
        """Whether the match is open here, or about to be, or cannot be opened here."""
        return match in self._open_tables.tables or match in self._opening or match in self._leaving

    def is_opening(self, match: str) -> bool:
        """Whether the match is about to be open here."""
        return match in self._opening

    async def take_jobs(self) -> None:
        """Takes matches as long as there are free tables. Runs until cancelled."""
        while True:
            try:
                await self._take_jobs_once(self.free_tables)
            except StoreUnavailable:
                log.debug("jobs_paused")
                await asyncio.sleep(STORE_RETRY_S)

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

    def stop_admission(self) -> None:
        """Takes no more matches. Jobs that were to be given back go to other referees with those of this one."""
        self.is_draining = True
        for leaving in self._leaving.values():
            leaving.cancel()

    async def _take_jobs_once(self, free: int) -> None:
        if free <= 0:
            await asyncio.sleep(STORE_RETRY_S)
            return
        most = min(free, MOST_AT_ONCE)
        jobs = await self._claims.store.jobs.take_jobs(self.name, most, TAKE_BLOCK_MS, self.game_kinds)
        await gather_limited(self._open_job(job) for job in jobs)

    async def _open_job(self, job: Job) -> None:
        """Opens the match of a job. Many jobs are opened at a time, so that they share their messages to the store."""
        if self.is_draining:  # an order to drain came while it asked
            self._open_tables.work.start_task(self._offers.give_back(job))
            return
        store = self._claims.store
        fence, meta = await asyncio.gather(
            store.journal.read_fence(job.match), store.matches.get_meta(job.match)
        )
        if fence is None or fence.is_retired or fence.owner == self.name:
            await self.open_match(UnownedMatch(job, self.name, fence, meta=meta))  # takeovers find the others

    def _leave_to_others(self, job: Job, giving_back: Coroutine[None, None, None]) -> None:
        """Leaves a match to a referee that can play it. Until its job was given back, it is ignored here."""
        leaving = self._leaving[job.match] = asyncio.create_task(giving_back)
        leaving.add_done_callback(lambda _: self._leaving.pop(job.match))

    async def _claim_and_open(self, unowned: UnownedMatch) -> None:
        lapses = self._lease.lapses
        owned = await self._claims.claim_match(unowned)
        if owned is None:
            return
        table = self._open_tables.add_table(owned, unowned)
        try:
            is_ours = await self._is_ours(table, lapses)
        except StoreUnavailable:
            self._open_tables.release_table(table)  # the fence names this referee, so the next check finds it
            raise
        if is_ours:
            self._open_tables.start_table(table, unowned, owned)
        else:
            self._open_tables.release_table(table)

    async def _is_ours(self, table: Table, lapses: int) -> bool:
        """Confirms that the match is ours, because the lease may have lapsed since it was claimed."""
        if self._lease.holds() and lapses == self._lease.lapses:
            return True
        journal = self._claims.store.journal
        return await journal.confirm_fence(table.name, table.epoch, self.name) is AppendResult.OK
