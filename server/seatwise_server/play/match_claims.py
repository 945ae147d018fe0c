"""Claims matches for this referee: new ones, and those of dead referees.

A claim sets the fence first, and then reads the journal, never in the other order. A job names the referee that took it, a
fence names the owner of the match.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import NamedTuple

import structlog

from seatwise_referee.ending import MatchState, VoidReason
from seatwise_referee.game import BadOptions, IllegalMove
from seatwise_referee.games.registry import GAMES
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.journal import BadEntry, Entry, Frozen, Rejected, TakenOver, decode_entry
from seatwise_referee.match import Match, replay_match
from seatwise_referee.position import first_position
from seatwise_referee.setup import JOURNAL_FORMAT, Setup
from seatwise_server.play.delivery import Delivery
from seatwise_server.play.step_marker import GAME_FAULT_MARK, STEP_MARKER
from seatwise_server.store import Death, Fence, Flusher, MatchMeta, Store
from seatwise_server.store.errors import FenceLost, MatchRetired
from seatwise_server.store.jobs import Job

MOST_DEATHS = 3
"""If so many owners died soon after they claimed a match, and it made no progress in between, the match is the cause."""
MOST_DEATHS_IN_ALL = 12
"""The same for all deaths of owners. It is higher because a failure that kills servers at random must not void matches."""

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
        """Claim the match; None if another owner has it, or if it is over or unknown. Raises UnknownFormat and changes nothing."""
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
        replay = partial(replay_match, setup, map(decode_entry, journal))
        try:
            if void is not VoidReason.GAME_FAULT:  # else the game's own code has stopped a process at it
                return OwnedMatch(STEP_MARKER.run_step(setup.match, replay), epoch, void, journal)
        except GameFault as fault:
            log.error("game_failed", match=setup.match, game=setup.game, why=str(fault))
            void = VoidReason.GAME_FAULT
        except (BadEntry, IllegalMove):
            log.exception("journal_unplayable", match=setup.match)
            void = VoidReason.UNPLAYABLE
        unplayable = Match(setup, first_position(setup)._replace(seq=len(journal)))
        return OwnedMatch(unplayable, epoch, void, journal)

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
        version = f"rules version {setup.rules_version}"
        raise UnknownFormat(f"it is {setup.game} with {version}, which is unknown here")
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
    entries = _decode_backwards(journal)
    since = takewhile(lambda entry: isinstance(entry, (TakenOver, Frozen, Rejected)), entries)
    return sum(isinstance(entry, TakenOver) for entry in since)


def _decode_backwards(journal: Sequence[bytes]) -> Iterator[Entry]:
    """Yield the entries from the end of the journal back to the last one that cannot be read."""
    with suppress(BadEntry):
        yield from map(decode_entry, reversed(journal))


def _void_reason(aborted_for: bytes | None, is_poisoned: bool) -> VoidReason | None:
    if aborted_for is not None:
        return VoidReason.GAME_FAULT if aborted_for == GAME_FAULT_MARK.encode() else VoidReason.ABORTED
    return VoidReason.POISONED if is_poisoned else None
