"""Takes matches of dead referees over: the share of this referee, only as many as fit.

A takeover reads the fences first, and then the heartbeats once more. Only after that a fence is claimed, as it was read. An
owner that came back in between has confirmed its fence, and the claim fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

import structlog

from seatwise_server.background_tasks import gather_limited
from seatwise_server.play.lease import STORE_RETRY_S
from seatwise_server.play.match_claims import UnownedMatch
from seatwise_server.play.referee import Referee
from seatwise_server.store import Death, DeathWatch, Fence, Heartbeat, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.jobs import Job
from seatwise_server.store.seats import handover_notices
from seatwise_server.timings import REFEREE_LEASE_S

TAKEOVER_CHECK_S = 0.25
SHARING_S = 0.5
"""The time after a death, in seconds, in which each referee takes only its share. After that, any referee with room takes the
rest, because the other referees may be dead too without anybody knowing yet.
"""
MATCHES_PER_LOOK = 128
"""The matches of one owner that are handled between two reads of the heartbeats, so that opening them does not delay these."""
SOON_DEATH_MS = 2_000
"""An owner that died later than this was hardly killed by a match: bots repeat their last messages as soon as they can."""

T = TypeVar("T")

ShareRule = Callable[[Sequence[UnownedMatch]], Sequence[UnownedMatch]]
"""Chooses which of the matches without a live owner this referee takes."""

log = structlog.get_logger()


class Takeover:
    """The takeovers of one referee."""

    def __init__(self, referee: Referee, store: Store) -> None:
        self._referee = referee
        self._name = referee.name
        self._kinds = referee.game_kinds
        self._store = store
        self._watch = DeathWatch(REFEREE_LEASE_S)
        self._beats: Mapping[str, Heartbeat] = {}
        self._owners: set[str] = set()
        """Owners of matches whose jobs others took, from this check and the one before: those owners may be dead too."""
        self._owners_before: set[str] = set()
        self._wake = asyncio.Event()
        self._dead_since: dict[str, float] = {}
        """The dead processes that have jobs, and when each was found dead."""

    async def run_takeovers(self) -> None:
        """Look for dead processes again and again. Runs until cancelled."""
        while True:
            try:
                await self._look_for_dead()
            except StoreUnavailable:
                log.debug("takeover_paused")
            await self._wait_for_next_look()

    async def _wait_for_next_look(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(TAKEOVER_CHECK_S):
                await self._wake.wait()
        self._wake.clear()

    async def listen_for_handovers(self) -> None:
        """Look at once when a referee has given up its matches. Runs until cancelled."""
        while True:
            with suppress(StoreUnavailable):
                async for _ in handover_notices(self._store.client):
                    self._wake.set()
            await asyncio.sleep(STORE_RETRY_S)

    async def take_over_all(self) -> None:
        """Take over every open job that fits. Only for a store that no other process uses, so that all owners are dead."""
        self._beats = await self._store.processes.read_heartbeats()
        for holder in await self._store.jobs.count_by_owner(self._kinds):
            held = await self._store.jobs.jobs_of(holder, self._referee.free_tables, kinds=self._kinds)
            unowned_matches = await self._with_fences(held, holder)
            await self._open_matches(unowned_matches, lambda _: True, self._take_all_that_fit)

    async def _look_for_dead(self) -> None:
        self._owners, self._owners_before = set(), self._owners
        holders = await self._read_heartbeats()
        for holder in self._dead_holders(holders):
            await self._take_over_from(holder, self._share_rule_for(holder))
        if holders.get(self._name, 0) != self._referee.open_matches:
            # This referee took jobs whose matches are not open: a reply was lost, or the store failed meanwhile.
            await self._take_over_from(self._name, self._take_all_that_fit)

    def _dead_holders(self, holders: Mapping[str, int]) -> list[str]:
        now = asyncio.get_running_loop().time()
        dead = holders.keys() & self._watch.dead_processes()
        self._dead_since = {holder: self._dead_since.get(holder, now) for holder in dead}
        return sorted(dead)

    def _share_rule_for(self, holder: str) -> ShareRule:
        waited_s = asyncio.get_running_loop().time() - self._dead_since[holder]
        return self._own_share if waited_s < SHARING_S else self._take_all_that_fit

    async def _take_over_from(self, holder: str, part: ShareRule) -> None:
        """Take over page by page, reading the heartbeats before each: a long gap would give every process a whole new lease."""
        last = ""
        while jobs := await self._store.jobs.jobs_of(holder, MATCHES_PER_LOOK, last, self._kinds):
            if unowned_matches := await self._with_fences(jobs, holder):
                await self._read_heartbeats()
                await self._open_matches(unowned_matches, self._is_dead, part)
            last = jobs[-1].job_id

    async def _read_heartbeats(self) -> dict[str, int]:
        """Read all heartbeats; returns the number of jobs of each process."""
        holders = await self._store.jobs.count_by_owner(self._kinds)
        loop = asyncio.get_running_loop()
        asked = loop.time()
        self._beats = await self._store.processes.read_heartbeats()
        mentioned = (holders.keys() | self._owners | self._owners_before) - {self._name}
        self._watch.observe_heartbeats(asked, loop.time(), self._beats, mentioned)
        return holders

    async def _with_fences(self, held: Sequence[Job], holder: str) -> list[UnownedMatch]:
        jobs = [job for job in held if not self._referee.has_match(job.match)]
        fences = await gather_limited(self._store.journal.read_fence(job.match) for job in jobs)
        self._owners |= {fence.owner for fence in fences if fence}
        found = zip(jobs, fences, strict=True)
        return [UnownedMatch(job, holder, fence, self._death_of(fence)) for job, fence in found]

    def _death_of(self, fence: Fence | None) -> Death:
        if fence is None:
            return Death.NONE
        beat = self._beats.get(fence.owner)
        if fence.owner == self._name or (beat and beat.has_left and not beat.has_died):
            return Death.NONE
        lived_ms = beat.beat_ms - fence.since_ms if beat else 0
        return Death.LATE if lived_ms >= SOON_DEATH_MS else Death.SOON

    async def _open_matches(
        self, unowned_matches: Sequence[UnownedMatch], is_dead: Callable[[str], bool], part: ShareRule
    ) -> None:
        """Open the matches that are already ours, and our part of those without a live owner."""
        ours = [it for it in unowned_matches if it.fence and it.fence.owner == self._name]
        without_owner = [it for it in unowned_matches if it.fence is None or is_dead(it.fence.owner)]
        await gather_limited(self._referee.open_match(each) for each in (*ours, *part(without_owner)))
        if self._referee.free_tables == 0:
            await self._put_back_jobs(it for it in without_owner if it.holder == self._name)

    async def _put_back_jobs(self, unowned_matches: Iterable[UnownedMatch]) -> None:
        """Put back the jobs of matches that are not open here: this referee has no room for them, or is draining."""
        for each in unowned_matches:
            if not self._referee.has_match(each.job.match):
                await self._store.jobs.give_back(each.job.job_id)

    def _is_dead(self, owner: str) -> bool:
        return owner in self._watch.dead_processes()

    def _own_share(self, unowned_matches: Sequence[UnownedMatch]) -> Sequence[UnownedMatch]:
        """Return this referee's share of the matches, which all live referees compute alike."""
        living = {
            name: beat.free
            for name, beat in self._beats.items()
            if not self._is_dead(name) and set(self._kinds) & set(beat.kinds)
        }
        return share_of(unowned_matches, {**living, self._name: self._referee.free_tables}, self._name)

    def _take_all_that_fit(self, unowned_matches: Sequence[UnownedMatch]) -> Sequence[UnownedMatch]:
        return unowned_matches[: self._referee.free_tables]


def share_of(matches: Sequence[T], free: Mapping[str, int], name: str) -> Sequence[T]:
    """Return the part that this referee takes: in proportion to free places, and no more than fits.

    Every referee computes the same from the same figures. If the figures differ, two referees may try the same
    match, and its fence decides. The rest is shared again at the next check.
    """
    total = sum(free.values())
    if total == 0:
        return ()
    before = sum(places for each, places in free.items() if each < name)
    fits = min(len(matches), total)
    return matches[fits * before // total : fits * (before + free[name]) // total]
