"""Hosts ladders: each ladder is kept up to date by one process, which holds its lease.

Two processes may believe for a moment that they hold a lease. That does no harm: both compute the same state, a
script takes bots off the queue, and an older table never replaces a newer one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.ladder.ladder_settings import Ladder, ladder_lease
from seatwise_server.ladder.ladder_state import LadderState
from seatwise_server.ladder.ladder_table import build_table, encode_point, encode_table
from seatwise_server.ladder.ladder_worker import StrengthClient, StrengthsFailed
from seatwise_server.store import LadderExclusion, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.timings import LADDER_CHECK_S, LADDER_LEASE_S

REST_FACTOR = 10
"""The pause after a table, as a multiple of the CPU time that it took to compute."""
LEAST_REST_S = 1.0
HISTORY_CHECK_S = 60.0
"""The least time between two attempts to add a point to the history of a ladder."""

log = structlog.get_logger()


@dataclass(slots=True)
class HostedLadder:
    """A ladder that this process hosts."""

    ladder: Ladder
    state: LadderState
    published_off: dict[str, LadderExclusion] | None = None
    """The bots that are published as off the ladder, each with its reason. `None` before the first publication."""
    published_revision: int = -1
    """The revision of the state in the published table."""
    publish_at: float = 0.0
    """The time of the event loop before which the table is not computed again."""
    is_closed: bool = False
    """Whether its results are final, and no bots are paired."""
    next_point_at: float = 0.0
    """No point is added to the history before this time of the event loop."""
    open_tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The bots of matches that were paired here and have no result yet."""
    _until: dict[str, float] = field(default_factory=dict)

    def note_table(self, match: str, bots: Sequence[str], until: float) -> None:
        """Note that these bots sit at a table until its result comes, or until this time if the match is voided."""
        self.open_tables[match] = tuple(bots)
        self._until[match] = until

    def forget_ended_tables(self, now: float) -> None:
        """Forget the tables whose result has come, and those whose time has passed."""
        over = self.state.ended_matches | {match for match, until in self._until.items() if until < now}
        self.state.ended_matches.clear()
        for match in over & self.open_tables.keys():
            del self.open_tables[match], self._until[match]


class LadderHost:
    """The ladders that one process hosts."""

    def __init__(self, store: Store, process: str) -> None:
        self._store = store
        self._process = process
        self.hosted: dict[str, HostedLadder] = {}
        self._strength_client = StrengthClient(store.results)
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._publishing: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Host ladders until cancelled."""
        try:
            while True:
                try:
                    await self._check_ladders()
                except StoreUnavailable:
                    log.debug("ladders_paused")
                await asyncio.sleep(LADDER_CHECK_S)
        finally:
            self._strength_client.kill_process()
            await cancel_until_ended({*self._opening.values(), *self._publishing.values()})
            await self._strength_client.close_process()

    async def release_ladders(self) -> None:
        """Release all leases, so that other processes need not wait for them to expire."""
        with suppress(StoreUnavailable):
            for name in list(self.hosted):
                del self.hosted[name]
                await self._store.leases.release_lease(ladder_lease(name), self._process)

    async def _check_ladders(self) -> None:
        for name in await self._store.ladders.all_names():
            lease, lease_ms = ladder_lease(name), int(LADDER_LEASE_S * 1000)
            if await self._store.leases.take_lease(lease, self._process, lease_ms):
                await self._update_ladder(name)
            else:
                self._drop_ladder(name)

    def _drop_ladder(self, name: str) -> None:
        """Stop hosting a ladder that another process holds."""
        if opening := self._opening.pop(name, None):
            opening.cancel()
        if self.hosted.pop(name, None):
            log.info("ladder_lease_lost", ladder=name)

    async def _update_ladder(self, name: str) -> None:
        hosted = self.hosted.get(name)
        if hosted is None:
            # In a task, because reading a long log takes longer than a lease lasts.
            opening = self._opening.get(name)
            if opening is None or opening.done():
                self._opening[name] = asyncio.create_task(self._open_ladder(name))
            return
        await self._note_closing(hosted)
        await hosted.state.catch_up()
        hosted.forget_ended_tables(asyncio.get_running_loop().time())
        await self._publish_off_reasons(hosted)
        self._start_publishing(hosted)

    async def _note_closing(self, hosted: HostedLadder) -> None:
        """Apply no further results of a ladder that was closed, and take its bots off the queue."""
        name = hosted.ladder.name
        meta = await self._store.ladders.find(name)
        if meta is None or meta.final_results is None:
            return
        hosted.is_closed = True
        hosted.state.end_after(meta.final_results)
        for waiting in await self._store.queues.list_entries(name):
            await self._store.queues.leave_queue(name, waiting.name)

    async def _open_ladder(self, name: str) -> None:
        """Read the ladder's whole log before any bot is paired by it."""
        try:
            meta = await self._store.ladders.find(name)
            if meta:
                hosted = HostedLadder(Ladder.from_bytes(meta.settings), LadderState(self._store, name))
                await self._note_closing(hosted)
                await hosted.state.catch_up()
                self.hosted[name] = hosted
                log.info("ladder_lease_taken", ladder=name, results=hosted.state.seq)
        except StoreUnavailable:
            log.debug("ladder_opening_paused", ladder=name)

    async def _publish_off_reasons(self, hosted: HostedLadder) -> None:
        """Store with each bot why it is off the ladder, for its owner. Repeating this does no harm."""
        name, off_reasons = hosted.ladder.name, dict(hosted.state.off_reasons)
        for bot, off in off_reasons.items():
            if (hosted.published_off or {}).get(bot) != off:
                await self._store.ladders.take_off(bot, name, off)
                await self._store.queues.leave_queue(name, bot)
                log.warning("bot_taken_off_ladder", ladder=name, bot=bot, reason=off.reason)
        before = hosted.state.reinstated if hosted.published_off is None else hosted.published_off.keys()
        for bot in before - off_reasons.keys():
            await self._store.ladders.let_back(bot, name)
        hosted.published_off = off_reasons

    def _start_publishing(self, hosted: HostedLadder) -> None:
        """Compute the table in a task, one at a time for each ladder, with rests between."""
        task, now = self._publishing.get(hosted.ladder.name), asyncio.get_running_loop().time()
        is_free = task is None or task.done()
        if is_free and hosted.published_revision != hosted.state.revision and now >= hosted.publish_at:
            self._publishing[hosted.ladder.name] = asyncio.create_task(self._publish_table(hosted))

    async def _publish_table(self, hosted: HostedLadder) -> None:
        loop, state, name = asyncio.get_running_loop(), hosted.state, hosted.ladder.name
        revision, results, cpu_s = state.revision, state.seq, LEAST_REST_S
        rated = state.ratings.ranked_bots()
        off = {bot: each.reason for bot, each in state.off_reasons.items()}
        try:
            strengths, cpu_s = await self._strength_client.fetch_strengths(name, results)
            rows = build_table(rated, strengths, off)
            await self._store.ladders.publish_table(name, results, encode_table(rows))
            # The store decides whether a point is due, because another process may have hosted the ladder before.
            if results and loop.time() >= hosted.next_point_at:
                await self._store.ladders.add_history_point(name, encode_point(results, rows))
                hosted.next_point_at = loop.time() + HISTORY_CHECK_S
            hosted.published_revision = revision
        except (StoreUnavailable, StrengthsFailed) as failed:
            log.warning("ladder_table_not_published", ladder=name, why=str(failed))
        hosted.publish_at = loop.time() + max(LEAST_REST_S, REST_FACTOR * cpu_s)
