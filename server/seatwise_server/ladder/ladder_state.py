"""A ladder's result log as it is read, folded up into ratings and form."""

from __future__ import annotations

import asyncio
from collections import deque

import structlog

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.openskill_ratings import OpenskillRatings
from seatwise_server.ladder.bot_form import Forms
from seatwise_server.store import Event, Store

AT_ONCE = 500
"""Results that are read together."""
BREATH = 25
"""Results that are folded up between two breaths of the event loop: some milliseconds."""

log = structlog.get_logger()


class Book:
    """What follows from a ladder's log and its events, and from nothing else: whoever reads them has the same."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name = name
        self.edition = 0
        """Rises with all that changes what is worked out of it."""
        self._reading = asyncio.Lock()
        self._begin()

    def _begin(self) -> None:
        self.seq = 0
        """The place of the last result that is in it."""
        self.ended: set[str] = set()
        """Matches whose results were read; for whoever keeps an eye on them, to be taken out by him."""
        self.ratings, self.forms = OpenskillRatings(), Forms()
        self.faults: dict[str, str] = {}
        """Those who may not be paired, and why."""
        self.pardoned: set[str] = set()
        """Bots that were let back on at some time."""
        self._events: deque[Event] = deque()
        """Those that were read and have not come yet."""
        self._last_event = "0-0"

    async def catch_up(self) -> None:
        """Reads what is new."""
        async with self._reading:  # for two ask for it: who pairs, and who shows the table
            while await self._read_some():
                pass

    async def _read_some(self) -> bool:
        """Results before events: an event that is read later has come after all of them."""
        if await self._store.results.count(self.name) < self.seq:
            log.warning("results_forgotten", ladder=self.name, known=self.seq)  # in a failover
            self._begin()
        results = await self._store.results.read(self.name, self.seq, AT_ONCE)
        events = await self._store.ladders.events(self.name, self._last_event)
        if events:
            self._events.extend(events)
            self._last_event = events[-1].place
        for number, result in enumerate(results):
            self._take_events()
            self._take(result)
            if number % BREATH == 0:
                await asyncio.sleep(0)
        self._take_events()
        self.edition += bool(results or events)
        return len(results) == AT_ONCE

    def _take(self, result: LoggedResult) -> None:
        self.seq = result.seq
        self.ended.add(result.match)
        self.ratings.apply_result(result)
        self.forms.apply(result)
        self._look_at(*result.bots)

    def _take_events(self) -> None:
        while self._events and self._events[0].at <= self.seq:
            event = self._events.popleft()
            for bot in event.absent:
                self.forms.miss(bot, event.match)
            for bot in event.pardoned:
                self.forms.pardon(bot)
            self.pardoned.update(event.pardoned)
            self._look_at(*event.absent, *event.pardoned)

    def _look_at(self, *bots: str) -> None:
        for bot in bots:
            if fault := self.forms.of(bot).fault():
                self.faults[bot] = fault
            else:
                self.faults.pop(bot, None)
