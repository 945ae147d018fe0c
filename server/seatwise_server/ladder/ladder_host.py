"""The ladders that this process looks after: one process each, by a lease.

Two may think so for a moment, and nothing comes of it: what they work out is the same, bots are taken off the queue by a
script, and a newer table is never replaced by an older one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from seatwise_server.ladder.ladder_settings import Ladder, ladder_lease
from seatwise_server.ladder.ladder_state import LadderState
from seatwise_server.ladder.ladder_table import build_table, encode_table
from seatwise_server.ladder.strength_client import StrengthClient, StrengthsFailed
from seatwise_server.store import Store
from seatwise_server.store.errors import StoreUnavailable

LADDER_CHECK_S = 0.5
LADDER_LEASE_S = 5.0
REST_FACTOR = 10
"""A table that took a second to work out is not worked out again for so many."""
LEAST_REST_S = 1.0

log = structlog.get_logger()


@dataclass(slots=True)
class HostedLadder:
    """A ladder that is ours to look after."""

    ladder: Ladder
    state: LadderState
    published_off: dict[str, str] | None = None
    """Those whom everybody is told to be off it, and why; None before it is known."""
    published_revision: int = -1
    """The edition of the book that is in the table which everybody sees."""
    publish_at: float = 0.0
    open_tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The bots of matches that were paired here and whose result has not come yet."""
    _until: dict[str, float] = field(default_factory=dict)

    def note_table(self, match: str, bots: Sequence[str], until: float) -> None:
        """These are at a table, until its result comes; it may never come, if the match is voided."""
        self.open_tables[match] = tuple(bots)
        self._until[match] = until

    def forget_ended_tables(self, now: float) -> None:
        """Forgets those that are over."""
        over = self.state.ended_matches | {match for match, until in self._until.items() if until < now}
        self.state.ended_matches.clear()
        for match in over & self.open_tables.keys():
            del self.open_tables[match], self._until[match]


class LadderHost:
    """Those of one process."""

    def __init__(self, store: Store, process: str) -> None:
        self._store = store
        self._process = process
        self.hosted: dict[str, HostedLadder] = {}
        self._strength_client = StrengthClient(store.results)
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._publishing: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Looks after them. Runs until cancelled."""
        try:
            while True:
                try:
                    await self._check_ladders()
                except StoreUnavailable:
                    log.debug("ladders_paused")
                await asyncio.sleep(LADDER_CHECK_S)
        finally:
            self._strength_client.kill_process()
            await _ended({*self._opening.values(), *self._publishing.values()})
            await self._strength_client.close_process()

    async def release_ladders(self) -> None:
        """Gives all of them back, so that others need not wait."""
        with suppress(StoreUnavailable):
            for name in list(self.hosted):
                del self.hosted[name]
                await self._store.leases.release(ladder_lease(name), self._process)

    async def _check_ladders(self) -> None:
        for name in await self._store.ladders.all_names():
            if await self._store.leases.hold(ladder_lease(name), self._process, int(LADDER_LEASE_S * 1000)):
                await self._update_ladder(name)
            else:
                self._drop_ladder(name)

    def _drop_ladder(self, name: str) -> None:
        """It is another's now."""
        if opening := self._opening.pop(name, None):
            opening.cancel()
        if self.hosted.pop(name, None):
            log.info("ladder_left", ladder=name)

    async def _update_ladder(self, name: str) -> None:
        held = self.hosted.get(name)
        if held is None:
            self._start_opening(name)
            return
        await held.state.catch_up()
        held.forget_ended_tables(asyncio.get_running_loop().time())
        await self._publish_off_reasons(held)
        self._start_publishing(held)

    def _start_opening(self, name: str) -> None:
        """Beside everything else: a long log takes longer to read than a lease lasts."""
        opening = self._opening.get(name)
        if opening is None or opening.done():
            self._opening[name] = asyncio.create_task(self._open_ladder(name))

    async def _open_ladder(self, name: str) -> None:
        """Reads the ladder's whole log, before anybody is paired by it."""
        try:
            meta = await self._store.ladders.get(name)
            if meta:
                held = HostedLadder(Ladder.from_bytes(meta.settings), LadderState(self._store, name))
                await held.state.catch_up()
                self.hosted[name] = held
                log.info("ladder_held", ladder=name, results=held.state.seq)
        except StoreUnavailable:
            log.debug("ladder_not_opened", ladder=name)

    async def _publish_off_reasons(self, held: HostedLadder) -> None:
        """With the bot, where its owner looks for it. All that is told may be told again."""
        name, faults = held.ladder.name, dict(held.state.off_reasons)
        for bot, reason in faults.items():
            if (held.published_off or {}).get(bot) != reason:
                await self._store.ladders.take_off(bot, name, reason)
                await self._store.queues.leave(name, bot)
                log.warning("bot_taken_off", ladder=name, bot=bot, reason=reason)
        before = held.state.reinstated if held.published_off is None else held.published_off.keys()
        for bot in before - faults.keys():
            await self._store.ladders.let_back(bot, name)
        held.published_off = faults

    def _start_publishing(self, held: HostedLadder) -> None:
        """Works the table out beside everything else, one at a time, and not all the time."""
        task, now = self._publishing.get(held.ladder.name), asyncio.get_running_loop().time()
        is_free = task is None or task.done()
        if is_free and held.published_revision != held.state.revision and now >= held.publish_at:
            self._publishing[held.ladder.name] = asyncio.create_task(self._publish_table(held))

    async def _publish_table(self, held: HostedLadder) -> None:
        loop, book = asyncio.get_running_loop(), held.state
        began, edition, results = loop.time(), book.revision, book.seq
        rated, off = book.ratings.ranked_bots(), dict(book.off_reasons)
        try:
            order = [bot for bot, _ in rated]
            strengths = await self._strength_client.fetch_strengths(held.ladder.name, results, order)
            table = encode_table(build_table(rated, strengths, off))
            await self._store.ladders.show(held.ladder.name, results, table)
            held.published_revision = edition
        except (StoreUnavailable, StrengthsFailed) as failed:
            log.warning("table_not_shown", ladder=held.ladder.name, why=str(failed))
        held.publish_at = loop.time() + max(LEAST_REST_S, REST_FACTOR * (loop.time() - began))


async def _ended(tasks: set[asyncio.Task[None]]) -> None:
    """Cancels until all have ended: up to Python 3.11 `wait_for`, and so redis-py, may swallow a cancellation."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.1)
