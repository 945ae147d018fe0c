"""Takes over the matches of dead referees: its share of them, and only what fits.

A job names who took it, a fence who owns the match. First the fences are read, then the heartbeats once
more, and only then is a fence claimed, as it was read: an owner that came to life again in between has
confirmed its fence, and the claim comes to nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

import structlog

from seatwise_server.play.lease import STORE_RETRY_S
from seatwise_server.store import Death, DeathWatch, Fence, Heartbeat, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.jobs import Job
from seatwise_server.store.notices import handover_notices
from seatwise_server.timings import REFEREE_LEASE_S

TAKEOVER_CHECK_S = 0.25
SHARING_S = 0.5
"""So long each takes only its share of what a dead one leaves; after that whoever has room takes what is left: the
others may be dead too, and nobody knows it yet."""
OPENINGS_AT_ONCE = 32
"""Matches that are opened at the same time."""
MATCHES_PER_LOOK = 128
"""Matches of one owner that are looked at in one go: opening them must not keep us from looking who lives."""
SOON_DEATH_MS = 2_000
"""Who died later was hardly killed by a match: bots say again what they said to the owner before as soon as they can."""

T = TypeVar("T")

log = structlog.get_logger()


class UnownedMatch(NamedTuple):
    """A match that may want an owner."""

    job: Job
    holder: str
    """Who took the job."""
    fence: Fence | None
    """As it was read."""
    death: Death = Death.NONE
    """Of its owner, if that did not leave in order."""


ShareRule = Callable[[Sequence[UnownedMatch]], Sequence[UnownedMatch]]
"""Which of the matches that are nobody's a referee is to take."""


class TakeoverHost(Protocol):
    """A referee, as it inherits."""

    @property
    def name(self) -> str:
        """Of its process."""
        ...

    @property
    def free_tables(self) -> int:
        """How many more matches fit."""
        ...

    @property
    def open_matches(self) -> int:
        """How many are open here, or about to be."""
        ...

    def has_match(self, match: str) -> bool:
        """Whether this one is."""
        ...

    async def open_match(self, estate: UnownedMatch) -> None:
        """Makes a match ours, unless its fence has changed."""
        ...


class Takeover:
    """What one referee takes over from others."""

    def __init__(self, host: TakeoverHost, store: Store) -> None:
        self._host = host
        self._name = host.name
        self._store = store
        self._watch = DeathWatch(REFEREE_LEASE_S)
        self._beats: Mapping[str, Heartbeat] = {}
        self._owners: set[str] = set()
        """Owners of matches whose jobs others hold, as of this look and the one before: they may be dead too."""
        self._owners_before: set[str] = set()
        self._wake = asyncio.Event()
        self._dead_since: dict[str, float] = {}
        """Holders of jobs that are dead, and when that was seen."""

    async def run_takeovers(self) -> None:
        """Looks for the dead again and again. Runs until cancelled."""
        while True:
            try:
                await self._look_for_dead()
            except StoreUnavailable:
                log.debug("inheritance_paused")
            await self._wait_for_next_look()

    async def _wait_for_next_look(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(TAKEOVER_CHECK_S):
                await self._wake.wait()
        self._wake.clear()

    async def listen_for_handovers(self) -> None:
        """Looks at once when a referee has let go of its matches. Runs until cancelled."""
        while True:
            with suppress(StoreUnavailable):
                async for _ in handover_notices(self._store.client):
                    self._wake.set()
            await asyncio.sleep(STORE_RETRY_S)

    async def take_over_all(self) -> None:
        """Takes over whatever is pending and fits: nobody else can live, for the store is ours alone."""
        self._beats = await self._store.processes.read_heartbeats()
        for holder in await self._store.jobs.count_by_owner():
            estates = await self._read_unowned(holder, self._host.free_tables)
            await self._open_matches(estates, lambda _: True, self._all_that_fit)

    async def _look_for_dead(self) -> None:
        self._owners, self._owners_before = set(), self._owners
        holders = await self._read_heartbeats()
        for holder in self._dead_holders(holders):
            await self._take_over_from(holder, self._share_rule_for(holder))
        if holders.get(self._name, 0) != self._host.open_matches:
            # Whose jobs we took and that are not open: a reply was lost, or the store went away in between.
            await self._take_over_from(self._name, self._all_that_fit)

    def _dead_holders(self, holders: Mapping[str, int]) -> list[str]:
        now = asyncio.get_running_loop().time()
        dead = holders.keys() & self._watch.dead_processes()
        self._dead_since = {holder: self._dead_since.get(holder, now) for holder in dead}
        return sorted(dead)

    def _share_rule_for(self, holder: str) -> ShareRule:
        waited_s = asyncio.get_running_loop().time() - self._dead_since[holder]
        return self._own_share if waited_s < SHARING_S else self._all_that_fit

    async def _take_over_from(self, holder: str, part: ShareRule) -> None:
        """Page by page, and looks who lives before each: after a long look away all would have a whole lease again."""
        last = ""
        while jobs := await self._store.jobs.jobs_of(holder, MATCHES_PER_LOOK, last):
            if estates := await self._with_fences(jobs, holder):
                await self._read_heartbeats()
                await self._open_matches(estates, self._is_dead, part)
            last = jobs[-1].job_id

    async def _read_heartbeats(self) -> dict[str, int]:
        """Looks at all heartbeats; answers who has how many jobs."""
        holders = await self._store.jobs.count_by_owner()
        loop = asyncio.get_running_loop()
        asked = loop.time()
        self._beats = await self._store.processes.read_heartbeats()
        mentioned = (holders.keys() | self._owners | self._owners_before) - {self._name}
        self._watch.observe_heartbeats(asked, loop.time(), self._beats, mentioned)
        return holders

    async def _read_unowned(self, holder: str, most: int) -> list[UnownedMatch]:
        """The matches whose jobs this process holds, less those that are open here."""
        return await self._with_fences(await self._store.jobs.jobs_of(holder, most), holder)

    async def _with_fences(self, held: Sequence[Job], holder: str) -> list[UnownedMatch]:
        jobs = [job for job in held if not self._host.has_match(job.match)]
        fences = await _gather_limited(self._store.journal.read_fence(job.match) for job in jobs)
        self._owners |= {fence.owner for fence in fences if fence}
        return [self._unowned_match(job, holder, fence) for job, fence in zip(jobs, fences, strict=True)]

    def _unowned_match(self, job: Job, holder: str, fence: Fence | None) -> UnownedMatch:
        return UnownedMatch(job, holder, fence, self._death_of(fence) if fence else Death.NONE)

    def _death_of(self, fence: Fence) -> Death:
        """How its owner died, if it is dead."""
        beat = self._beats.get(fence.owner)
        if fence.owner == self._name or (beat and beat.has_left):
            return Death.NONE
        lived_ms = beat.beat_ms - fence.since_ms if beat else 0
        return Death.LATE if lived_ms >= SOON_DEATH_MS else Death.SOON

    async def _open_matches(
        self, estates: Sequence[UnownedMatch], is_dead: Callable[[str], bool], part: ShareRule
    ) -> None:
        """Those that are ours without our knowing, and our part of those that are nobody's."""
        ours = [it for it in estates if it.fence and it.fence.owner == self._name]
        nobodys = [it for it in estates if it.fence is None or is_dead(it.fence.owner)]
        await _gather_limited(self._host.open_match(each) for each in (*ours, *part(nobodys)))
        if self._host.free_tables == 0:
            await self._pass_on(it for it in nobodys if it.holder == self._name)

    async def _pass_on(self, estates: Iterable[UnownedMatch]) -> None:
        """For others to take: there is no room here, be it that we are being drained."""
        for each in estates:
            if not self._host.has_match(each.job.match):
                await self._store.jobs.give_back(each.job.job_id)

    def _is_dead(self, owner: str) -> bool:
        return owner in self._watch.dead_processes()

    def _own_share(self, estates: Sequence[UnownedMatch]) -> Sequence[UnownedMatch]:
        """Of what all who live are looking at."""
        living = {name: beat.free for name, beat in self._beats.items() if not self._is_dead(name)}
        return share_of(estates, {**living, self._name: self._host.free_tables}, self._name)

    def _all_that_fit(self, estates: Sequence[UnownedMatch]) -> Sequence[UnownedMatch]:
        """Of what nobody else looks at, or has not taken."""
        return estates[: self._host.free_tables]


def share_of(estates: Sequence[T], free: Mapping[str, int], name: str) -> Sequence[T]:
    """The part that is this referee's to take: in proportion to free places, and no more than fits.

    Every referee reckons the same from the same figures; where figures differ two may go for one match, and
    its fence decides. What is left over is shared again at the next look.
    """
    total = sum(free.values())
    if total == 0:
        return ()
    before = sum(places for each, places in free.items() if each < name)
    fits = min(len(estates), total)
    return estates[fits * before // total : fits * (before + free[name]) // total]


async def _gather_limited(work: Iterable[Coroutine[Any, Any, T] | Awaitable[T]]) -> list[T]:
    """All results, some at a time."""
    turn = asyncio.Semaphore(OPENINGS_AT_ONCE)

    async def one(each: Awaitable[T]) -> T:
        async with turn:
            return await each

    return await asyncio.gather(*[one(each) for each in work])
