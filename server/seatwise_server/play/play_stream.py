"""One bot's stream at this referee: its outbox, its one writer, its measured round trip."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from seatwise_server.play import play_messages
from seatwise_server.play.outbox import Outbox
from seatwise_server.refusal import LAST_WORD_S, Refusal

PING_S = 2.0
ROUND_TRIPS = 8
"""The allowance is the least of this many."""
BLOCKED_S = 10.0
"""A write that takes longer ends the stream: the bot does not read."""


class PlayStream:
    """All seats of one bot at this referee, as long as one stream lasts."""

    def __init__(self, bot: str, may_speak: Callable[[], bool] = lambda: True) -> None:
        self.bot = bot
        self._may_speak = may_speak
        """While it is false nothing is written; when it is true again somebody wakes the outbox."""
        self.outbox = Outbox(asyncio.get_running_loop())
        self.lookups = 0
        """Questions to the store that are under way for this stream."""
        self._loop = asyncio.get_running_loop()
        self.is_ending = False
        self.refusal: Refusal | None = None
        """Why the stream is ended by us."""
        self._writer: asyncio.Task[object] | None = None
        self._write_began: float | None = None
        self._pings: dict[int, float] = {}
        self._ping_number = 0
        self._round_trips: deque[int] = deque(maxlen=ROUND_TRIPS)

    @property
    def allowance_ms(self) -> int | None:
        """The bot's measured round trip; `None` as long as there is none."""
        return min(self._round_trips, default=None)

    async def write_all(self, write: Callable[[bytes], Awaitable[object]]) -> Refusal | None:
        """Writes what the outbox holds until the stream is to end; says why it ends. The only writer."""
        self._writer = asyncio.current_task()
        try:
            while not self.is_ending:
                await self.outbox.wait_until_due()
                await self._write_draft(write)
            await self._write_draft(write)
        except asyncio.CancelledError:
            if self.refusal is None:
                raise
        finally:
            self._writer = None
        return self.refusal

    async def _write_draft(self, write: Callable[[bytes], Awaitable[object]]) -> None:
        if not self._may_speak():
            self.outbox.hold_writes()
            return
        draft = self.outbox.take_draft()
        if not draft.items:
            return
        self._write_began = self._loop.time()
        await write(play_messages.encode_response(draft.items))
        self._write_began = None
        for table, seat, prompt in draft.prompts:
            table.on_prompt_delivered(seat, prompt, self.allowance_ms)

    def end(self, why: Refusal | None) -> None:
        """Lets the writer write what there is, if that is read soon; `None` when the bot says no more."""
        if not self.is_ending:
            self.is_ending, self.refusal = True, why
            self.outbox.wake_writer()
            if why:
                self._loop.call_later(LAST_WORD_S, self._stop_writing)

    def cut_off(self, why: Refusal) -> None:
        """Ends it without a word of what is still unwritten."""
        self.outbox.discard_all()
        self.end(why)

    def _stop_writing(self) -> None:
        if self._writer:
            self._writer.cancel()

    def check_reader(self) -> None:
        """To be called every `PING_S`: measures the round trip, and ends a stream that is not read."""
        now = self._loop.time()
        if self._write_began is not None and now - self._write_began > BLOCKED_S:
            self.end(Refusal("SLOW_READER", f"nothing was read for {BLOCKED_S:.0f} s"))
            self._stop_writing()
        elif self._write_began is None and len(self._pings) < ROUND_TRIPS:
            self._send_ping(now)

    def ping_first(self) -> None:
        """The bot sits down somewhere: its round trip is wanted before it answers anything."""
        if not self._ping_number:
            self._send_ping(self._loop.time())

    def _send_ping(self, now: float) -> None:
        self._ping_number += 1
        self._pings[self._ping_number] = now
        self.outbox.add_answer(play_messages.encode_ping(self._ping_number), at_once=True)

    def on_pong(self, number: int, at: float) -> None:
        """The bot has answered a ping; an answer to no ping counts for nothing."""
        sent = self._pings.pop(number, None)
        if sent is not None:
            self._pings = {each: when for each, when in self._pings.items() if each > number}
            is_first = not self._round_trips
            self._round_trips.append(int((at - sent) * 1000))
            for table, seat in list(self.outbox.seats) if is_first else ():
                table.on_round_trip(seat, self._round_trips[0])
