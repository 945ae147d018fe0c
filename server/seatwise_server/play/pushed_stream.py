"""A bot's stream without a writer task: messages are pushed to the transport in the next turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from seatwise_server.play import play_messages
from seatwise_server.play.distance_meter import DistanceMeter
from seatwise_server.play.play_stream import PlayStream
from seatwise_server.refusal import Refusal
from seatwise_server.stream_arrival import StreamArrival


class PushedPlayStream(PlayStream):
    """A play stream for a transport that takes bytes at once, and reports when it has too many."""

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
        """Waits until nothing more is to be pushed; returns the reason for the end of the stream. Raises an
        error of a flush.
        """
        await self._over
        return self.refusal

    def pause_pushing(self) -> None:
        """Stops pushing, because the bot does not read as fast. Messages collect, as during a write that takes long."""
        if self._write_began is None:
            self._write_began = self._loop.time()

    def resume_pushing(self) -> None:
        """Continues, because the transport takes bytes again."""
        self._write_began = None
        self._schedule_flush()

    def abandon(self) -> None:
        """Ends the stream, because its transport is gone."""
        self.end(None)
        self._stop_writing()

    def fail(self, error: Exception) -> None:
        """Ends this stream with an internal error, which affects no other stream."""
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
