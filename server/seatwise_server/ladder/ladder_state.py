"""The state of a ladder, computed from its result log and events: ratings, forms, and the bots that are off it."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime

import structlog

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.openskill_ratings import OpenskillRatings
from seatwise_server.ladder.bot_form import BotForm, BotForms, PairMeetings
from seatwise_server.store import Event, LadderExclusion, Store

RESULTS_PER_READ = 500
"""The number of results that are read from the store at once."""
RESULTS_PER_YIELD = 25
"""The number of results that are applied before the event loop gets a turn. They take some milliseconds."""

log = structlog.get_logger()


class LadderState:
    """The ratings, forms and exclusions that follow from a ladder's log and events. They are the same in every process."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name = name
        self._last_seq: int | None = None
        self.revision = 0
        """A number that rises with every change."""
        self._reading = asyncio.Lock()
        self._reset_state()

    def _reset_state(self) -> None:
        self.seq = 0
        """The number of the last result that was applied."""
        self.ended_matches: set[str] = set()
        """Matches whose results were applied. The reader of this set empties it."""
        self.ratings, self.forms, self.meetings = OpenskillRatings(), BotForms(), PairMeetings()
        self.off_reasons: dict[str, LadderExclusion] = {}
        """The bots that may not be paired, each with its reason."""
        self.reinstated: set[str] = set()
        """Bots that were reinstated at some time."""
        self._events: deque[Event] = deque()
        """Events that were read but not applied: some results before them have not been read."""
        self._last_event = "0-0"

    def end_after(self, last_seq: int) -> None:
        """Apply no results after this one, because the ladder is closed."""
        self._last_seq = last_seq
        if self.seq > last_seq:
            self._reset_state()

    async def catch_up(self) -> None:
        """Read and apply all new results and events. Raises `StoreUnavailable`."""
        async with self._reading:  # both the pairing task and the publishing task call it
            while await self._read_batch():
                pass

    async def _read_batch(self) -> bool:
        """Read results before events, so that every result before an event that was read has been read too.

        Return whether there may be more.
        """
        if await self._store.results.count_results(self.name) < self.seq:
            # a failover of Redis has lost results
            log.warning("ladder_results_lost", ladder=self.name, known=self.seq)
            self._reset_state()
        left = RESULTS_PER_READ if self._last_seq is None else self._last_seq - self.seq
        count = min(RESULTS_PER_READ, left)
        results = await self._store.results.read_results(self.name, self.seq, count) if count else []
        events = await self._store.ladders.read_events(self.name, self._last_event)
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
        self.ratings.apply_result(result, is_rated=self.meetings.admit_result(result))
        self.forms.apply_result(result)
        self._update_off_reasons(*result.bots)

    def _apply_due_events(self) -> None:
        while self._events and self._events[0].at <= self.seq:
            event = self._events.popleft()
            for bot in event.absent:
                self.forms.note_no_show(bot, event.match, event.at_ms)
            for bot in event.pardoned:
                if event.by_itself:
                    self.forms.let_bot_return(bot, event.at_ms)
                else:
                    self.forms.reinstate_bot(bot)
            self.reinstated.update(event.pardoned)
            self._update_off_reasons(*event.absent, *event.pardoned)

    def _update_off_reasons(self, *bots: str) -> None:
        for bot in bots:
            if (form := self.forms.form_of(bot)).is_off:
                self.off_reasons[bot] = _describe_exclusion(form)
            else:
                self.off_reasons.pop(bot, None)


def _describe_exclusion(form: BotForm) -> LadderExclusion:
    way_back = "only the operator readmits it now"
    if form.back_ms:
        at = datetime.fromtimestamp(form.back_ms / 1000, UTC)
        way_back = f"its own token readmits it from {at:%Y-%m-%d %H:%M:%S} UTC on, the operator earlier"
    return LadderExclusion(f"{form.off_reason()}; {way_back}", form.back_ms)
