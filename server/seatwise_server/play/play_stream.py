"""One bot's stream at this referee: its outbox, its one writer, its measured round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from seatwise_server.counts import COUNTS
from seatwise_server.play import play_messages
from seatwise_server.play.allowance import DistanceMeter
from seatwise_server.play.outbox import Draft, Outbox, UpdateSource
from seatwise_server.play.table import Table
from seatwise_server.refusal import REFUSAL_DELIVERY_S, Refusal
from seatwise_server.streams import StreamArrival, note_arrival_of_stream

PING_S = 2.0
FIRST_PINGS = 4
"""So many pings follow each other at once where pongs count, so that one late pong says little of the distance."""
MOST_OPEN_PINGS = 8
"""The most pings that wait for their pongs."""
BLOCKED_S = 10.0
"""A write that takes longer than this ends the stream, because the bot does not read."""

MOST_STREAMS = 20_000
"""The most bots that are connected to one referee."""


class PlayStream:
    """All seats of one bot at this referee, for the duration of one stream."""

    def __init__(
        self,
        bot: str,
        may_speak: Callable[[], bool] = lambda: True,
        on_due: Callable[[], None] | None = None,
        meter: DistanceMeter | None = None,
        arrival: StreamArrival | None = None,
    ) -> None:
        """`arrival` is when the call came; None means that it comes now."""
        self.bot = bot
        self.arrival = arrival or note_arrival_of_stream()
        self.meter = meter or DistanceMeter()
        self._may_speak = may_speak
        """Whether messages may be written now; when that becomes true again, the outbox is woken."""
        self.outbox = Outbox(asyncio.get_running_loop(), on_due)
        self.lookups = 0
        """The number of open lookups in the store for this stream."""
        self._loop = asyncio.get_running_loop()
        self.is_ending = False
        self.refusal: Refusal | None = None
        """The reason for which the server ends the stream."""
        self._writer: asyncio.Task[object] | None = None
        self._write_began: float | None = None
        self._pings: dict[int, float] = {}
        self._ping_number = 0

    def allowance_at(self, table: UpdateSource) -> int | None:
        """Return what is taken off the bot's charges at this table in ms; None if nothing was measured."""
        return self.meter.allowance_ms(self._loop.time(), needs_proof=table.needs_proof)

    def report_allowance(self, table: UpdateSource, seat: int) -> None:
        """Tell the table how far away the bot of this seat is, if that is known."""
        allowance_ms = self.allowance_at(table)
        if allowance_ms is not None:
            table.on_round_trip(seat, allowance_ms)

    async def write_all(self, write: Callable[[bytes], Awaitable[object]]) -> Refusal | None:
        """Write the outbox until the stream is to end, and return the reason for its end. The only writer of the stream."""
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
        self._note_delivered(draft)

    def _note_delivered(self, draft: Draft) -> None:
        for table, seat, prompt in draft.prompts:
            table.on_prompt_delivered(seat, prompt, self.allowance_at(table))

    def end(self, why: Refusal | None) -> None:
        """End the stream after the unwritten messages, if they are read soon; `why` is None if the bot has ended it."""
        if not self.is_ending:
            self.is_ending, self.refusal = True, why
            self.outbox.wake_writer()
            if why:
                self._loop.call_later(REFUSAL_DELIVERY_S, self._stop_writing)

    def cut_off(self, why: Refusal) -> None:
        """End the stream and drop its unwritten messages."""
        self.outbox.discard_all()
        self.outbox.is_cut = True
        self.end(why)

    def _stop_writing(self) -> None:
        if self._writer:
            self._writer.cancel()

    def check_reader(self) -> None:
        """Measure the round trip, and end a stream that is not read. Call it every `PING_S` seconds."""
        now = self._loop.time()
        if self._write_began is not None and now - self._write_began > BLOCKED_S:
            self.end(Refusal("SLOW_READER", f"nothing was read for {BLOCKED_S:.0f} s"))
            self._stop_writing()
        elif self._write_began is None and len(self._pings) < MOST_OPEN_PINGS:
            self._send_ping()
        if self.meter.measure_kernel(now):
            self._report_to_all()

    def ping_first(self) -> None:
        """Send the first ping when the bot sits down, so that the round trip is known before its first answer."""
        if not self._ping_number:
            self._send_ping()

    def _send_ping(self) -> None:
        self._ping_number += 1
        self._pings[self._ping_number] = self._loop.time()
        self.outbox.add_answer(play_messages.encode_ping(self._ping_number), at_once=True)

    def on_pong(self, number: int, at: float) -> None:
        """Handle the answer to a ping; an answer to no ping is ignored."""
        sent = self._pings.pop(number, None)
        if sent is not None:
            self._pings = {each: when for each, when in self._pings.items() if each > number}
            if self.meter.note_pong((at - sent) * 1000, at):
                self._report_to_all()
            if self.meter.needs_pongs and self._ping_number < FIRST_PINGS:
                self._send_ping()

    def _report_to_all(self) -> None:
        for table, seat in list(self.outbox.seats):
            self.report_allowance(table, seat)


class PushedPlayStream(PlayStream):
    """A play stream without a writer task: messages are pushed in the next turn of the event loop.

    Its transport takes bytes at once, and reports when it has too many.
    """

    def __init__(
        self,
        bot: str,
        push: Callable[[bytes], None],
        may_speak: Callable[[], bool] = lambda: True,
        meter: DistanceMeter | None = None,
        arrival: StreamArrival | None = None,
    ) -> None:
        super().__init__(bot, may_speak, self._schedule_flush, meter, arrival)
        self._push = push
        self._is_scheduled = False
        self._over: asyncio.Future[None] = self._loop.create_future()
        self.on_flushed: Callable[[], None] = lambda: None
        """Called after each flush, because there is room for answers again."""

    async def wait_until_over(self) -> Refusal | None:
        """Wait until nothing more is to be pushed; returns the reason for the end of the stream. Raises an error of a flush."""
        await self._over
        return self.refusal

    def pause_pushing(self) -> None:
        """Stop pushing, because the bot does not read as fast. Messages collect, as during a write that takes long."""
        if self._write_began is None:
            self._write_began = self._loop.time()

    def resume_pushing(self) -> None:
        """Continues, because the transport takes bytes again."""
        self._write_began = None
        self._schedule_flush()

    def abandon(self) -> None:
        """End the stream, because its transport is gone."""
        self.end(None)
        self._stop_writing()

    def fail(self, error: Exception) -> None:
        """End this stream with an internal error, which affects no other stream."""
        if not self._over.done():
            self._over.set_exception(error)

    def _schedule_flush(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_scheduled = False
        if self._over.done() or self._write_began is not None:
            return
        try:
            self._push_draft()
            self.on_flushed()
        except Exception as error:
            self.fail(error)
        if self.is_ending:
            self._stop_writing()

    def _push_draft(self) -> None:
        if not self._may_speak():
            return
        draft = self.outbox.take_draft()
        if draft.items:
            self._push(play_messages.encode_response(draft.items))
            self._note_delivered(draft)

    def _stop_writing(self) -> None:
        if not self._over.done():
            self._over.set_result(None)


class PlayStreams:
    """The streams of one referee process."""

    def __init__(self) -> None:
        self._streams: dict[str, PlayStream] = {}
        self._written = 0

    @property
    def has_writers(self) -> bool:
        """Whether any stream has a writer task, as those through gRPC have."""
        return self._written > 0

    def __len__(self) -> int:
        return len(self._streams)

    def __contains__(self, bot: str) -> bool:
        return bot in self._streams

    def get_stream(self, bot: str) -> PlayStream | None:
        """Return the bot's stream; None if it has none."""
        return self._streams.get(bot)

    @contextmanager
    def attach_stream(self, stream: PlayStream) -> Iterator[None]:
        """Register the stream as the bot's while the context lasts; replaces an older stream.

        Raises `Refusal` SERVER_FULL if too many bots are connected, and REPLACED if a stream that came later was quicker.
        """
        other = self._streams.get(stream.bot)
        if other is None and len(self._streams) >= MOST_STREAMS:
            COUNTS.count_fault("LIMIT")
            message = f"{MOST_STREAMS} bots are connected here; try again soon"
            raise Refusal("SERVER_FULL", message, retry_after="5")
        replaced = Refusal("REPLACED", "a newer stream of this bot has taken over", bot=stream.bot)
        if other and other.arrival > stream.arrival:
            raise replaced
        if other:
            other.end(replaced)
        self._streams[stream.bot] = stream
        is_written = not isinstance(stream, PushedPlayStream)
        self._written += is_written
        try:
            yield
        finally:
            self._written -= is_written
            if self._streams.get(stream.bot) is stream:
                del self._streams[stream.bot]
            for table, seat in list(stream.outbox.seats):
                table.drop_link(seat, stream.outbox)

    async def watch_streams(self) -> None:
        """Measure round trips and end streams that are not read. Runs until cancelled."""
        while True:
            await asyncio.sleep(PING_S)
            for stream in list(self._streams.values()):
                stream.check_reader()

    def wake_writers(self) -> None:
        """Wake all writers, because messages may be written again."""
        for stream in list(self._streams.values()):
            stream.outbox.wake_writer()

    def cut_streams(self, table: Table) -> None:
        """End the streams of a match that another owner has, without sending the messages that are unwritten."""
        moved = "another referee has a match of this stream; open it again for the other matches"
        for seat, bot in enumerate(table.match.setup.bots):
            stream = self._streams.get(bot)
            if stream and table.sits_through(seat, stream.outbox):
                stream.cut_off(Refusal("MATCH_MOVED", moved, match=table.name))
