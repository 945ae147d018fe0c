"""The streams of all bots at this referee: one for each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from seatwise_server.play.play_stream import PING_S, PlayStream
from seatwise_server.play.table import Table
from seatwise_server.refusal import Refusal

MOST_STREAMS = 20_000
"""Bots that one referee listens to."""


class PlayStreams:
    """One for each referee process."""

    def __init__(self) -> None:
        self._streams: dict[str, PlayStream] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def __contains__(self, bot: str) -> bool:
        return bot in self._streams

    def get_stream(self, bot: str) -> PlayStream | None:
        """The bot's stream, if it has one."""
        return self._streams.get(bot)

    @contextmanager
    def attach_stream(self, stream: PlayStream) -> Iterator[None]:
        """As long as this lasts the stream is the bot's at this referee; an older one is replaced."""
        older = self._streams.get(stream.bot)
        if older is None and len(self._streams) >= MOST_STREAMS:
            raise Refusal("SERVER_FULL", f"{MOST_STREAMS} bots are here; try again soon", retry_after="5")
        if older:
            older.end(Refusal("REPLACED", "a newer stream of this bot has taken over", bot=stream.bot))
        self._streams[stream.bot] = stream
        try:
            yield
        finally:
            if self._streams.get(stream.bot) is stream:
                del self._streams[stream.bot]
            for table, seat in list(stream.outbox.seats):
                table.drop_link(seat, stream.outbox)

    async def watch_streams(self) -> None:
        """Measures round trips and ends streams that are not read. Runs until cancelled."""
        while True:
            await asyncio.sleep(PING_S)
            for stream in list(self._streams.values()):
                stream.check_reader()

    def wake_writers(self) -> None:
        """What was held back may be written."""
        for stream in list(self._streams.values()):
            stream.outbox.wake_writer()

    def cut_streams(self, table: Table) -> None:
        """Whoever sat here must not hear what we had yet to say of a match that is another's."""
        moved = "another referee has a match of this stream; come back for the others"
        for seat, bot in enumerate(table.match.setup.bots):
            stream = self._streams.get(bot)
            if stream and table.sits_through(seat, stream.outbox):
                stream.cut_off(Refusal("MATCH_MOVED", moved, match=table.name))
