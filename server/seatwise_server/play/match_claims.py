"""Claims matches for this referee: new ones, and its share of those of dead referees, only as many as fit.

A claim sets the fence first, and then reads the journal, never in the other order. A job names the referee that took it, a
fence names the owner of the match. A takeover reads the fences first, and then the heartbeats once more. Only after that a
fence is claimed, as it was read. An owner that came back in between has confirmed its fence, and the claim fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple, Protocol, TypeVar

import structlog

from seatwise_referee.ending import MatchState, VoidReason
from seatwise_referee.game import BadOptions, IllegalMove
from seatwise_referee.games.registry import GAMES
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.journal import BadEntry, Entry, Frozen, Rejected, TakenOver, decode_entry
from seatwise_referee.match import Match, replay_match
from seatwise_referee.position import first_position
from seatwise_referee.setup import JOURNAL_FORMAT, Setup
from seatwise_server.background_tasks import gather_limited
from seatwise_server.play.delivery import Delivery
from seatwise_server.play.lease import STORE_RETRY_S, LeaseHolder
from seatwise_server.play.step_marker import GAME_FAULT_MARK, STEP_MARKER
from seatwise_server.store import Death, DeathWatch, Fence, Flusher, Heartbeat, MatchMeta, Store
from seatwise_server.store.errors import FenceLost, MatchRetired, StoreUnavailable
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
MOST_DEATHS = 3
"""If so many owners died soon after they claimed a match, and it made no progress in between, the match is the cause."""
MOST_DEATHS_IN_ALL = 12
"""The same for all deaths of owners. It is higher because a failure that kills servers at random must not void matches."""

T = TypeVar("T")

log = structlog.get_logger()


class UnownedMatch(NamedTuple):
    """A match that may need an owner."""

    job: Job
    holder: str
    """The process that took the job."""
    fence: Fence | None
    """The fence as it was read."""
    death: Death = Death.NONE
    """Whether and when its owner died; NONE if the owner stopped in an orderly way."""
    meta: MatchMeta | None = None
    """The stored facts, if they were read with the fence."""


class UnknownFormat(Exception):
    """The match was written by another version; a referee of that version must have it."""


@dataclass(frozen=True, slots=True)
class OwnedMatch:
    """A match that this referee owns."""

    match: Match
    epoch: int
    void: VoidReason | None
    """The reason for which it must be voided; None if it can be played."""
    journal: Sequence[bytes]
    """All entries of the journal."""
    is_queued: bool = False
    """Whether a queue in which no-shows count has seated its bots."""
    is_listed_as_seating: bool = False
    """Whether the lists show it as SEATING already."""


@dataclass(frozen=True, slots=True)
class MatchClaims:
    """Claims and replays the matches of one referee."""

    owner: str
    store: Store
    flusher: Flusher
    delivery: Delivery

    async def claim_match(self, unowned: UnownedMatch) -> OwnedMatch | None:
        """Claim the match; returns None if another owner has it, or if it is over or unknown.

        Raises UnknownFormat without changing anything.
        """
        job = unowned.job
        meta = unowned.meta or await self.store.matches.get_meta(job.match)
        if meta is None or "setup" not in meta.fields:
            log.warning("job_without_match_finished", match=job.match)
            await self.store.jobs.finish_job(job.job_id)
            return None
        setup = _parse_setup(meta)
        claimed = await self._set_fence(setup, unowned)
        if claimed is None:
            return None
        epoch, journal = claimed
        # Wait until the replicas have these entries. The tail is kept, to write again the entries that a failover loses.
        await self.flusher.wait_for_replicas(setup.match)
        self.flusher.keep_tail(setup.match, epoch, self.owner, journal)
        is_poisoned = await self._is_poisoned(unowned, epoch, journal)
        owned = self._replay(setup, epoch, journal, _void_reason(meta.fields.get("abort"), is_poisoned))
        is_seating = meta.state == MatchState.SEATING
        return replace(owned, is_queued=bool(meta.waited_since), is_listed_as_seating=is_seating)

    async def _set_fence(self, setup: Setup, unowned: UnownedMatch) -> tuple[int, list[bytes]] | None:
        """Return the new epoch and the entries; None if the match is another owner's, or over."""
        job, fence = unowned.job, unowned.fence
        expected, confirmed = (fence.epoch, fence.confirmed) if fence else (0, None)
        claim = self.store.journal.claim_match
        try:
            return await claim(job.match, self.owner, expected, confirmed, unowned.death)
        except MatchRetired:
            await self.delivery.conclude_delivery(setup)
            await self.store.jobs.finish_job(job.job_id)
        except FenceLost as lost:
            log.info("match_belongs_to_another", match=job.match, owner=lost.owner)
        return None

    async def _is_poisoned(self, unowned: UnownedMatch, epoch: int, journal: list[bytes]) -> bool:
        """Whether too many owners have died with the match since it last made progress."""
        fence = unowned.fence
        if fence is None:
            return False
        deaths = fence.deaths + (unowned.death is not Death.NONE)
        late = fence.late + (unowned.death is Death.LATE)
        if deaths > 1 and _has_progressed(journal, fence.epoch):
            await self.store.journal.clear_deaths(unowned.job.match, epoch, self.owner)
            return False
        died_at_it = deaths - late >= MOST_DEATHS and _takeovers_without_progress(journal) >= MOST_DEATHS - 1
        return died_at_it or deaths >= MOST_DEATHS_IN_ALL

    def _replay(self, setup: Setup, epoch: int, journal: list[bytes], void: VoidReason | None) -> OwnedMatch:
        if (
            void is VoidReason.GAME_FAULT
        ):  # the game's own code has stopped a process at this match: do not run it again
            return OwnedMatch(_unplayable_match(setup, len(journal)), epoch, void, journal)
        try:
            match = STEP_MARKER.run_step(setup.match, lambda: replay_match(setup, map(decode_entry, journal)))
            return OwnedMatch(match, epoch, void, journal)
        except GameFault as fault:
            log.error("game_failed", match=setup.match, game=setup.game, why=str(fault))
            return OwnedMatch(_unplayable_match(setup, len(journal)), epoch, VoidReason.GAME_FAULT, journal)
        except (BadEntry, IllegalMove):
            log.exception("journal_unplayable", match=setup.match)
            return OwnedMatch(_unplayable_match(setup, len(journal)), epoch, VoidReason.UNPLAYABLE, journal)

    async def reclaim_match(self, setup: Setup, epoch: int) -> OwnedMatch | None:
        """Restore a match that was ours at this epoch until Redis forgot it; None if it belongs to another owner by now."""
        entries = self.flusher.tail_entries(setup.match)
        try:
            fresh = await self.store.journal.reclaim_match(setup.match, self.owner, epoch)
        except (FenceLost, MatchRetired):
            return None
        self.flusher.keep_tail(setup.match, fresh, self.owner, entries)
        if not (await self.flusher.rewrite_missing(setup.match)).is_kept:
            return None
        log.warning("match_restored", match=setup.match, epoch=fresh, entries=len(entries))
        return OwnedMatch(replay_match(setup, map(decode_entry, entries)), fresh, None, entries)


def _parse_setup(meta: MatchMeta) -> Setup:
    written = meta.fields.get("format", JOURNAL_FORMAT.encode()).decode()
    if written != JOURNAL_FORMAT:
        raise UnknownFormat(f"its journal has the unknown format {written}")
    setup = Setup.from_json(json.loads(meta.fields["setup"]))
    game = GAMES.get(setup.game)
    if game is None or game.rules_version != setup.rules_version:
        raise UnknownFormat(
            f"it is {setup.game} with rules version {setup.rules_version}, which is unknown here"
        )
    try:
        game.complete_options(setup.options)
    except BadOptions as unknown:
        raise UnknownFormat(f"it has options that are unknown here: {unknown}") from None
    return setup


def _has_progressed(journal: Sequence[bytes], epoch: int) -> bool:
    """Whether the owner at that epoch made progress with the match: then the match did not cause the earlier deaths."""
    opened = (entry.epoch for entry in _decode_backwards(journal) if isinstance(entry, TakenOver))
    return not _takeovers_without_progress(journal) and next(opened, 1) == epoch


def _takeovers_without_progress(journal: Sequence[bytes]) -> int:
    """Return how many owners have taken the match over since it last made progress."""
    since = takewhile(
        lambda entry: isinstance(entry, (TakenOver, Frozen, Rejected)), _decode_backwards(journal)
    )
    return sum(isinstance(entry, TakenOver) for entry in since)


def _decode_backwards(journal: Sequence[bytes]) -> Iterator[Entry]:
    """Yield the entries from the end of the journal back to the last one that cannot be read."""
    with suppress(BadEntry):
        yield from map(decode_entry, reversed(journal))


def _void_reason(aborted_for: bytes | None, is_poisoned: bool) -> VoidReason | None:
    if aborted_for is not None:
        return VoidReason.GAME_FAULT if aborted_for == GAME_FAULT_MARK.encode() else VoidReason.ABORTED
    return VoidReason.POISONED if is_poisoned else None


def _unplayable_match(setup: Setup, seq: int) -> Match:
    """Return a match that can only be voided, because its journal cannot be replayed."""
    return Match(setup, first_position(setup)._replace(seq=seq))


ShareRule = Callable[[Sequence[UnownedMatch]], Sequence[UnownedMatch]]
"""Chooses which of the matches without a live owner this referee takes."""


class TakeoverHost(LeaseHolder, Protocol):
    """The referee, as far as its takeovers need it."""

    @property
    def open_matches(self) -> int:
        """The number of matches that are open here, or about to be."""

    def has_match(self, match: str) -> bool:
        """Whether the match is open here, or about to be."""

    async def open_match(self, unowned: UnownedMatch) -> None:
        """Claim a match and open it, unless its fence has changed."""


class Takeover:
    """The takeovers of one referee."""

    def __init__(self, host: TakeoverHost, store: Store) -> None:
        self._host = host
        self._name = host.name
        self._kinds = host.game_kinds
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
            held = await self._store.jobs.jobs_of(holder, self._host.free_tables, kinds=self._kinds)
            unowned_matches = await self._with_fences(held, holder)
            await self._open_matches(unowned_matches, lambda _: True, self._take_all_that_fit)

    async def _look_for_dead(self) -> None:
        self._owners, self._owners_before = set(), self._owners
        holders = await self._read_heartbeats()
        for holder in self._dead_holders(holders):
            await self._take_over_from(holder, self._share_rule_for(holder))
        if holders.get(self._name, 0) != self._host.open_matches:
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
        jobs = [job for job in held if not self._host.has_match(job.match)]
        fences = await gather_limited(self._store.journal.read_fence(job.match) for job in jobs)
        self._owners |= {fence.owner for fence in fences if fence}
        return [self._unowned_match(job, holder, fence) for job, fence in zip(jobs, fences, strict=True)]

    def _unowned_match(self, job: Job, holder: str, fence: Fence | None) -> UnownedMatch:
        return UnownedMatch(job, holder, fence, self._death_of(fence) if fence else Death.NONE)

    def _death_of(self, fence: Fence) -> Death:
        """Return how the owner of the fence died, if it is dead."""
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
        await gather_limited(self._host.open_match(each) for each in (*ours, *part(without_owner)))
        if self._host.free_tables == 0:
            await self._put_back_jobs(it for it in without_owner if it.holder == self._name)

    async def _put_back_jobs(self, unowned_matches: Iterable[UnownedMatch]) -> None:
        """Put back the jobs of matches that are not open here: this referee has no room for them, or is draining."""
        for each in unowned_matches:
            if not self._host.has_match(each.job.match):
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
        return share_of(unowned_matches, {**living, self._name: self._host.free_tables}, self._name)

    def _take_all_that_fit(self, unowned_matches: Sequence[UnownedMatch]) -> Sequence[UnownedMatch]:
        """Return as many of the matches as fit, without regard to other referees."""
        return unowned_matches[: self._host.free_tables]


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
