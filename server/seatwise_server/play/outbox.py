"""What waits to be written to one bot: the latest view of each seat, and a bounded number of answers.

Many put in, exactly one writer takes out. A prompt or a rejection leaves at once; acceptances and
unasked views ride with the next message or wait for a sweep.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

SWEEP_S = 0.1
MOST_ANSWERS = 256
"""With more than this unwritten, the reader of the same stream stops."""


class UpdateSource(Protocol):
    """A table as the writer sees it."""

    def encode_update(self, seat: int) -> tuple[bytes, int]:
        """The seat's update as of now, and its open prompt (0 if the seat is not asked)."""
        ...

    def on_prompt_delivered(self, seat: int, prompt: int, allowance_ms: int | None) -> None:
        """The prompt has been given to the transport; `None` if its round trip is not known yet."""
        ...

    def on_round_trip(self, seat: int, allowance_ms: int) -> None:
        """The first round trip is known."""
        ...

    def drop_link(self, seat: int, outbox: Outbox) -> None:
        """The stream of this outbox is gone."""
        ...


@dataclass(slots=True)
class Draft:
    """One message to be written, and what is to be told when it was."""

    items: list[bytes] = field(default_factory=list)
    prompts: list[tuple[UpdateSource, int, int]] = field(default_factory=list)


class Outbox:
    """Between the tables of one bot and the writer of its stream."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._answers: list[bytes] = []
        self._views: dict[tuple[UpdateSource, int], None] = {}
        self._ends: dict[tuple[UpdateSource, int], bytes] = {}
        self.seats: dict[tuple[UpdateSource, int], None] = {}
        """Where the bot sits through here, as long as those tables are open."""
        self._is_swept = False
        """A sweep is coming. It is not called off when all is written before: most are, and timers cost."""
        self._due = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def add_answer(self, item: bytes, *, at_once: bool) -> None:
        """Puts an answer in. The reader keeps the number bounded by waiting for `room`."""
        self._answers.append(item)
        if len(self._answers) >= MOST_ANSWERS:
            self._room.clear()
            at_once = True
        self._schedule_write(at_once)

    def mark_view_due(self, table: UpdateSource, seat: int, *, at_once: bool) -> None:
        """The seat's view is due. Views that were not written yet are replaced by the newer one."""
        self._views[table, seat] = None
        self._schedule_write(at_once)

    def add_match_end(self, table: UpdateSource, seat: int, item: bytes) -> None:
        """The match is over: the seat's last view, then the end."""
        self._views[table, seat] = None
        self._ends[table, seat] = item
        self._schedule_write(True)

    def forget_seat(self, table: UpdateSource, seat: int, *, may_show: bool) -> None:
        """The table closes. What is due of a match that is over may still be shown, of any other not."""
        self.seats.pop((table, seat), None)
        if not may_show:
            self._views.pop((table, seat), None)

    def discard_all(self) -> None:
        """Forgets all that is unwritten; a bot that sits down again is told what matters."""
        self._answers, self._views, self._ends = [], {}, {}
        self._room.set()

    def hold_writes(self) -> None:
        """Nothing may be written now; `wake` when it may."""
        self._due.clear()

    def wake_writer(self) -> None:
        """Lets the writer look around although there is nothing to write."""
        self._due.set()

    @property
    def is_full(self) -> bool:
        """Whether the reader is to wait for `room`."""
        return not self._room.is_set()

    async def wait_for_room(self) -> None:
        """Returns when there is room for answers."""
        await self._room.wait()

    async def wait_until_due(self) -> None:
        """Returns when something is to be written."""
        await self._due.wait()

    def take_draft(self) -> Draft:
        """Takes out all there is; views are made now, from what is in the journal now."""
        self._due.clear()
        draft = Draft(items=self._answers)
        self._answers = []
        self._room.set()
        views, self._views = self._views, {}
        for table, seat in views:
            item, prompt = table.encode_update(seat)
            draft.items.append(item)
            if prompt:
                draft.prompts.append((table, seat, prompt))
        draft.items += self._ends.values()
        self._ends = {}
        return draft

    def _schedule_write(self, at_once: bool) -> None:
        if at_once:
            self._due.set()
        elif not self._is_swept:
            self._is_swept = True
            self._loop.call_later(SWEEP_S, self._on_sweep)

    def _on_sweep(self) -> None:
        self._is_swept = False
        if self._answers or self._views:
            self._due.set()
