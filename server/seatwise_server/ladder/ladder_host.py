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

from seatwise_server.ladder.ladder_settings import Ladder, lease_of
from seatwise_server.ladder.ladder_state import Book
from seatwise_server.ladder.ladder_table import table_of, written
from seatwise_server.ladder.strength_client import RefitFailed, Refitting
from seatwise_server.store import Store
from seatwise_server.store.errors import StoreUnavailable

BEAT_S = 0.5
LEASE_S = 5.0
REST = 10
"""A table that took a second to work out is not worked out again for so many."""
LEAST_REST_S = 1.0

log = structlog.get_logger()


@dataclass(slots=True)
class Held:
    """A ladder that is ours to look after."""

    ladder: Ladder
    book: Book
    off: dict[str, str] | None = None
    """Those whom everybody is told to be off it, and why; None before it is known."""
    shown: int = -1
    """The edition of the book that is in the table which everybody sees."""
    show_at: float = 0.0
    at_tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The bots of matches that were paired here and whose result has not come yet."""
    _until: dict[str, float] = field(default_factory=dict)

    def note_table(self, match: str, bots: Sequence[str], until: float) -> None:
        """These are at a table, until its result comes; it may never come, if the match is voided."""
        self.at_tables[match] = tuple(bots)
        self._until[match] = until

    def clear_tables(self, now: float) -> None:
        """Forgets those that are over."""
        over = self.book.ended | {match for match, until in self._until.items() if until < now}
        self.book.ended.clear()
        for match in over & self.at_tables.keys():
            del self.at_tables[match], self._until[match]


class Holding:
    """Those of one process."""

    def __init__(self, store: Store, process: str) -> None:
        self._store = store
        self._process = process
        self.held: dict[str, Held] = {}
        self._refitting = Refitting(store.results)
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._shows: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Looks after them. Runs until cancelled."""
        try:
            while True:
                try:
                    await self._look_round()
                except StoreUnavailable:
                    log.debug("ladders_paused")
                await asyncio.sleep(BEAT_S)
        finally:
            self._refitting.kill()
            await _ended({*self._opening.values(), *self._shows.values()})
            await self._refitting.close()

    async def release(self) -> None:
        """Gives all of them back, so that others need not wait."""
        with suppress(StoreUnavailable):
            for name in list(self.held):
                del self.held[name]
                await self._store.leases.release(lease_of(name), self._process)

    async def _look_round(self) -> None:
        for name in await self._store.ladders.all_names():
            if await self._store.leases.hold(lease_of(name), self._process, int(LEASE_S * 1000)):
                await self._look_after(name)
            else:
                self._let_go(name)

    def _let_go(self, name: str) -> None:
        """It is another's now."""
        if opening := self._opening.pop(name, None):
            opening.cancel()
        if self.held.pop(name, None):
            log.info("ladder_left", ladder=name)

    async def _look_after(self, name: str) -> None:
        held = self.held.get(name)
        if held is None:
            self._open_soon(name)
            return
        await held.book.catch_up()
        held.clear_tables(asyncio.get_running_loop().time())
        await self._tell_who_is_off(held)
        self._show_soon(held)

    def _open_soon(self, name: str) -> None:
        """Beside everything else: a long log takes longer to read than a lease lasts."""
        opening = self._opening.get(name)
        if opening is None or opening.done():
            self._opening[name] = asyncio.create_task(self._open(name))

    async def _open(self, name: str) -> None:
        """Reads the ladder's whole log, before anybody is paired by it."""
        try:
            meta = await self._store.ladders.get(name)
            if meta:
                held = Held(Ladder.from_bytes(meta.settings), Book(self._store, name))
                await held.book.catch_up()
                self.held[name] = held
                log.info("ladder_held", ladder=name, results=held.book.seq)
        except StoreUnavailable:
            log.debug("ladder_not_opened", ladder=name)

    async def _tell_who_is_off(self, held: Held) -> None:
        """With the bot, where its owner looks for it. All that is told may be told again."""
        name, faults = held.ladder.name, dict(held.book.faults)
        for bot, reason in faults.items():
            if (held.off or {}).get(bot) != reason:
                await self._store.ladders.take_off(bot, name, reason)
                await self._store.queues.leave(name, bot)
                log.warning("bot_taken_off", ladder=name, bot=bot, reason=reason)
        before = held.book.pardoned if held.off is None else held.off.keys()
        for bot in before - faults.keys():
            await self._store.ladders.let_back(bot, name)
        held.off = faults

    def _show_soon(self, held: Held) -> None:
        """Works the table out beside everything else, one at a time, and not all the time."""
        task, now = self._shows.get(held.ladder.name), asyncio.get_running_loop().time()
        is_free = task is None or task.done()
        if is_free and held.shown != held.book.edition and now >= held.show_at:
            self._shows[held.ladder.name] = asyncio.create_task(self._show(held))

    async def _show(self, held: Held) -> None:
        loop, book = asyncio.get_running_loop(), held.book
        began, edition, results = loop.time(), book.edition, book.seq
        rated, off = book.ratings.ranked_bots(), dict(book.faults)
        try:
            order = [bot for bot, _ in rated]
            strengths = await self._refitting.strengths(held.ladder.name, results, order)
            table = written(table_of(rated, strengths, off))
            await self._store.ladders.show(held.ladder.name, results, table)
            held.shown = edition
        except (StoreUnavailable, RefitFailed) as failed:
            log.warning("table_not_shown", ladder=held.ladder.name, why=str(failed))
        held.show_at = loop.time() + max(LEAST_REST_S, REST * (loop.time() - began))


async def _ended(tasks: set[asyncio.Task[None]]) -> None:
    """Cancels until all have ended: up to Python 3.11 `wait_for`, and so redis-py, may swallow a cancellation."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.1)
