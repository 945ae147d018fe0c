"""The streams of all bots at this referee, one for each bot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from seatwise_server.counts import COUNTS
from seatwise_server.play.play_stream import PING_S, PlayStream
from seatwise_server.play.table import Table
from seatwise_server.refusal import Refusal

MOST_STREAMS = 20_000
"""The most bots that are connected to one referee."""


class PlayStreams:
    """The streams of one referee process."""

    def __init__(self) -> None:
        self._streams: dict[str, PlayStream] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def __contains__(self, bot: str) -> bool:
        return bot in self._streams

    def get_stream(self, bot: str) -> PlayStream | None:
        """Returns the bot's stream; None if it has none."""
        return self._streams.get(bot)

    @contextmanager
    def attach_stream(self, stream: PlayStream) -> Iterator[None]:
        """Registers the stream as the bot's while the context lasts; replaces an older stream.

        Raises `Refusal` SERVER_FULL if too many bots are connected, and REPLACED if a stream that came later was quicker.
        """
        other = self._streams.get(stream.bot)
        if other is None and len(self._streams) >= MOST_STREAMS:
            COUNTS.count_fault("LIMIT")
            raise Refusal(
                "SERVER_FULL", f"{MOST_STREAMS} bots are connected here; try again soon", retry_after="5"
            )
        replaced = Refusal("REPLACED", "a newer stream of this bot has taken over", bot=stream.bot)
        if other and other.arrival > stream.arrival:
            raise replaced
        if other:
            other.end(replaced)
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
        """Wakes all writers, because messages may be written again."""
        for stream in list(self._streams.values()):
            stream.outbox.wake_writer()

    def cut_streams(self, table: Table) -> None:
        """Ends the streams of a match that another owner has, without sending the messages that are unwritten."""
        moved = "another referee has a match of this stream; open it again for the other matches"
        for seat, bot in enumerate(table.match.setup.bots):
            stream = self._streams.get(bot)
            if stream and table.sits_through(seat, stream.outbox):
                stream.cut_off(Refusal("MATCH_MOVED", moved, match=table.name))
