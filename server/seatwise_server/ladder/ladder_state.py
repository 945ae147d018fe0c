"""A ladder's result log as it is read, folded up into ratings and form."""

from __future__ import annotations

import asyncio
from collections import deque

import structlog

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.openskill_ratings import OpenskillRatings
from seatwise_server.ladder.bot_form import BotForms
from seatwise_server.store import Event, Store

RESULTS_PER_READ = 500
"""Results that are read together."""
RESULTS_PER_YIELD = 25
"""Results that are folded up between two breaths of the event loop: some milliseconds."""

log = structlog.get_logger()


class LadderState:
    """What follows from a ladder's log and its events, and from nothing else: whoever reads them has the same."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name = name
        self.revision = 0
        """Rises with all that changes what is worked out of it."""
        self._reading = asyncio.Lock()
        self._reset_state()

    def _reset_state(self) -> None:
        self.seq = 0
        """The place of the last result that is in it."""
        self.ended_matches: set[str] = set()
        """Matches whose results were read; for whoever keeps an eye on them, to be taken out by him."""
        self.ratings, self.forms = OpenskillRatings(), BotForms()
        self.off_reasons: dict[str, str] = {}
        """Those who may not be paired, and why."""
        self.reinstated: set[str] = set()
        """Bots that were let back on at some time."""
        self._events: deque[Event] = deque()
        """Those that were read and have not come yet."""
        self._last_event = "0-0"

    async def catch_up(self) -> None:
        """Reads what is new."""
        async with self._reading:  # for two ask for it: who pairs, and who shows the table
            while await self._read_batch():
                pass

    async def _read_batch(self) -> bool:
        """Results before events: an event that is read later has come after all of them."""
        if await self._store.results.count(self.name) < self.seq:
            log.warning("results_forgotten", ladder=self.name, known=self.seq)  # in a failover
            self._reset_state()
        results = await self._store.results.read(self.name, self.seq, RESULTS_PER_READ)
        events = await self._store.ladders.events(self.name, self._last_event)
        if events:
            self._events.extend(events)
            self._last_event = events[-1].place
        for number, result in enumerate(results):
            self._apply_due_events()
            self._apply_result(result)
            if number % RESULTS_PER_YIELD == 0:
                await asyncio.sleep(0)
        self._apply_due_events()
        self.revision += bool(results or events)
        return len(results) == RESULTS_PER_READ

    def _apply_result(self, result: LoggedResult) -> None:
        self.seq = result.seq
        self.ended_matches.add(result.match)
        self.ratings.apply_result(result)
        self.forms.apply_result(result)
        self._update_off_reasons(*result.bots)

    def _apply_due_events(self) -> None:
        while self._events and self._events[0].at <= self.seq:
            event = self._events.popleft()
            for bot in event.absent:
                self.forms.note_no_show(bot, event.match)
            for bot in event.pardoned:
                self.forms.reinstate_bot(bot)
            self.reinstated.update(event.pardoned)
            self._update_off_reasons(*event.absent, *event.pardoned)

    def _update_off_reasons(self, *bots: str) -> None:
        for bot in bots:
            if fault := self.forms.form_of(bot).off_reason():
                self.off_reasons[bot] = fault
            else:
                self.off_reasons.pop(bot, None)
