"""The messages that wait to be written to one bot: the latest view of each seat, and a bounded number of answers.

Several tables add to it, and exactly one writer empties it. Prompts and rejections are written at once. Acceptances and views
without a prompt are written with the next message, or after `SWEEP_S`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

SWEEP_S = 0.1
MOST_ANSWERS = 256
"""At this number of unwritten answers the reader of the same stream stops."""


class UpdateSource(Protocol):
    """A table, as far as the writer needs it."""

    @property
    def needs_proof(self) -> bool:
        """Whether a bot's own word about its distance counts for nothing now."""
        ...

    def encode_update(self, seat: int) -> tuple[bytes, int]:
        """Return the present update of the seat, and the number of its open prompt (0 if the seat is not asked)."""
        ...

    def on_prompt_delivered(self, seat: int, prompt: int, allowance_ms: int | None) -> None:
        """Called when the prompt was given to the transport; `allowance_ms` is None if the round trip is not known yet."""
        ...

    def on_round_trip(self, seat: int, allowance_ms: int) -> None:
        """Called when a round trip was measured that is the first, or shorter than all before."""
        ...

    def drop_link(self, seat: int, outbox: Outbox) -> None:
        """Called when the stream of this outbox is gone."""
        ...


class Draft(NamedTuple):
    """One message to write, and the prompts that count as delivered once it is written."""

    items: list[bytes]
    prompts: list[tuple[UpdateSource, int, int]]


class Outbox:
    """The queue between the tables of one bot and the writer of its stream."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_due: Callable[[], None] | None = None) -> None:
        self._loop = loop
        self._on_due = on_due
        """Called when something is to be written, for a writer that is not a task; often more than once."""
        self._answers: list[bytes] = []
        self._views: dict[tuple[UpdateSource, int], None] = {}
        self._ends: dict[tuple[UpdateSource, int], bytes] = {}
        self.seats: dict[tuple[UpdateSource, int], None] = {}
        """The seats at which the bot sits through this stream, while their tables are open."""
        self.is_cut = False
        """Whether we ended the stream because of another match, so that the bot has to come back by no fault of its own."""
        self._is_swept = False
        """Whether a sweep is scheduled. It is not cancelled if everything is written before, because timers cost time."""
        self._due = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def add_answer(self, item: bytes, *, at_once: bool) -> None:
        """Add an answer. The reader bounds their number with `wait_for_room`."""
        self._answers.append(item)
        if len(self._answers) >= MOST_ANSWERS:
            self._room.clear()
            at_once = True
        self._schedule_write(at_once)

    def mark_view_due(self, table: UpdateSource, seat: int, *, at_once: bool) -> None:
        """Notes that the seat's view must be written. A newer view replaces one that was not written yet."""
        self._views[table, seat] = None
        self._schedule_write(at_once)

    def add_match_end(self, table: UpdateSource, seat: int, item: bytes) -> None:
        """Add the seat's last view and then the end of the match."""
        self._views[table, seat] = None
        self._ends[table, seat] = item
        self._schedule_write(True)

    def forget_seat(self, table: UpdateSource, seat: int, *, may_show: bool) -> None:
        """Remove a seat whose table closes. Its unwritten view is kept only if the match is over (`may_show`)."""
        self.seats.pop((table, seat), None)
        if not may_show:
            self._views.pop((table, seat), None)

    def discard_all(self) -> None:
        """Drop everything unwritten; a bot that sits down again is told everything that it needs."""
        self._answers, self._views, self._ends = [], {}, {}
        self._room.set()

    def hold_writes(self) -> None:
        """Stop writing until `wake_writer` is called."""
        self._due.clear()

    def wake_writer(self) -> None:
        """Wake the writer even if there is nothing to write."""
        if self._on_due is None:
            self._due.set()
        else:
            self._on_due()

    @property
    def is_full(self) -> bool:
        """Whether the reader must wait for room."""
        return not self._room.is_set()

    async def wait_for_room(self) -> None:
        """Wait until there is room for answers."""
        await self._room.wait()

    async def wait_until_due(self) -> None:
        """Wait until something is to be written."""
        await self._due.wait()

    def take_draft(self) -> Draft:
        """Take everything that is unwritten; views are encoded now, from the journal's present state."""
        self._due.clear()
        items, self._answers = self._answers, []
        prompts: list[tuple[UpdateSource, int, int]] = []
        self._room.set()
        views, self._views = self._views, {}
        for table, seat in views:
            item, prompt = table.encode_update(seat)
            items.append(item)
            if prompt:
                prompts.append((table, seat, prompt))
        items += self._ends.values()
        self._ends = {}
        return Draft(items, prompts)

    def _schedule_write(self, at_once: bool) -> None:
        if at_once:
            self.wake_writer()
        elif not self._is_swept:
            self._is_swept = True
            self._loop.call_later(SWEEP_S, self._on_sweep)

    def _on_sweep(self) -> None:
        self._is_swept = False
        if self._answers or self._views:
            self.wake_writer()
