"""One bot's stream at this referee: its outbox, its one writer, its measured round trip."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from seatwise_server.play import items
from seatwise_server.play.outbox import Outbox
from seatwise_server.refusal import Refusal

PING_S = 2.0
ROUND_TRIPS = 8
"""The allowance is the least of this many."""
BLOCKED_S = 10.0
"""A write that takes longer ends the stream: the bot does not read."""


class PlayStream:
    """All seats of one bot at this referee, as long as one stream lasts."""

    def __init__(self, bot: str) -> None:
        self.bot = bot
        self.outbox = Outbox(asyncio.get_running_loop())
        self.lookups = 0
        """Questions to the store that are under way for this stream."""
        self._loop = asyncio.get_running_loop()
        self.is_ending = False
        self.refusal: Refusal | None = None
        """Why the stream is ended by us."""
        self._stop_blocked: Callable[[], object] | None = None
        self._write_began: float | None = None
        self._pings: dict[int, float] = {}
        self._ping_number = 0
        self._round_trips: deque[int] = deque(maxlen=ROUND_TRIPS)

    @property
    def allowance_ms(self) -> int:
        """The seat's measured round trip; 0 as long as there is none."""
        return min(self._round_trips, default=0)

    async def write_all(self, write: Callable[[bytes], Awaitable[object]]) -> Refusal | None:
        """Writes what the outbox holds until the stream is to end; says why it ends. The only writer."""
        task = asyncio.current_task()
        assert task is not None
        self._stop_blocked = task.cancel
        while not self.is_ending:
            await self.outbox.due()
            draft = self.outbox.drain()
            if not draft.items:
                continue
            self._write_began = self._loop.time()
            await write(items.response(draft.items))
            self._write_began = None
            for table, seat, prompt in draft.prompts:
                table.handed(seat, prompt, self.allowance_ms)
        return self.refusal

    def end(self, why: Refusal | None) -> None:
        """Lets the writer finish what it is at, then ends the stream; `None` when the bot has hung up."""
        if not self.is_ending:
            self.is_ending, self.refusal = True, why
            self.outbox.wake()

    def watch(self) -> None:
        """To be called every `PING_S`: measures the round trip, and ends a stream that is not read."""
        now = self._loop.time()
        if self._write_began is not None and now - self._write_began > BLOCKED_S:
            self.end(Refusal("SLOW_READER", f"nothing was read for {BLOCKED_S:.0f} s"))
            if self._stop_blocked:
                self._stop_blocked()
        elif self._write_began is None and len(self._pings) < ROUND_TRIPS:
            self._ping_number += 1
            self._pings[self._ping_number] = now
            self.outbox.answer(items.ping(self._ping_number), at_once=True)

    def pong(self, number: int, at: float) -> None:
        """The bot has answered a ping; an answer to no ping counts for nothing."""
        sent = self._pings.pop(number, None)
        if sent is not None:
            self._pings = {each: when for each, when in self._pings.items() if each > number}
            self._round_trips.append(int((at - sent) * 1000))
