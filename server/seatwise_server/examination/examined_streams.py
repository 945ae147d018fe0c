"""The streams of a bot that is examined, as the checks of the doctor use them."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise.v1 import play_service_pb2
from seatwise_server.refusal import Refusal

EXAMINATION_PREFIX = "matches/examination-"
"""The names of the matches of examinations begin with it. They have neither a table nor a record."""
PING_BASE = 1 << 40
"""Added to the numbers of pings of an examination, so that they differ from those that measure the distance of the bot."""
MOST_UNCHECKED_ITEMS = 1024
"""The most items of a bot that wait for a check. Further ones are dropped."""


class ExaminedAttendance(Protocol):
    """The Attend stream of a bot, as an examination uses it."""

    bot: str
    owner: str
    """The owner of the bot; empty if an operator has registered it."""
    max_matches: int

    @property
    def is_ending(self) -> bool:
        """Whether the stream is to end."""
        ...

    def queue_response(self, response: pb.AttendResponse) -> None:
        """Queues a response."""
        ...

    def end(self, why: Refusal | None) -> None:
        """Ends the stream after the queued responses were written."""
        ...


class AnswerQueue(Protocol):
    """The outbox of a Play stream, as an examination uses it."""

    def add_answer(self, item: bytes, *, at_once: bool) -> None:
        """Adds an item."""
        ...


class ExaminedPlay(Protocol):
    """The Play stream of a bot, as an examination uses it."""

    @property
    def bot(self) -> str:
        """The bot of the stream."""
        ...

    @property
    def outbox(self) -> AnswerQueue:
        """The items to be written."""
        ...

    @property
    def is_ending(self) -> bool:
        """Whether the stream is to end."""
        ...

    def end(self, why: Refusal | None) -> None:
        """Ends the stream after the unwritten items."""
        ...


class ExaminedLobby:
    """The lobby's end of the Attend stream. No check reads more of it than the first request."""

    def __init__(self, attendance: ExaminedAttendance) -> None:
        self._attendance = attendance

    async def read(self, patience_s: float) -> pb.AttendRequest:  # noqa: ARG002
        """See `ScriptedStream`."""
        return pb.AttendRequest(max_matches=self._attendance.max_matches)

    async def send(self, message: pb.AttendResponse) -> None:
        """See `ScriptedStream`."""
        self._attendance.queue_response(message)


class ExaminedReferee:
    """The referee's end of one Play stream."""

    def __init__(self, stream: ExaminedPlay, nothing_came: type[Exception]) -> None:
        """`nothing_came` is raised when the bot has sent nothing within the patience of a check."""
        self.stream = stream
        self._nothing_came = nothing_came
        self.inbox: asyncio.Queue[play_service_pb2.PlayRequestItem] = asyncio.Queue(MOST_UNCHECKED_ITEMS)
        self.is_gone = asyncio.Event()

    async def read(self, patience_s: float) -> play_service_pb2.PlayRequestItem:
        """See `ScriptedStream`."""
        try:
            async with asyncio.timeout(patience_s):
                return await self.inbox.get()
        except TimeoutError:
            raise self._nothing_came(f"nothing came for {patience_s:g} s") from None

    async def send(self, message: play_service_pb2.PlayResponse) -> None:
        """See `ScriptedStream`."""
        for item in message.items:
            if item.HasField("ping"):
                item.ping.number += PING_BASE
            self.stream.outbox.add_answer(item.SerializeToString(), at_once=True)

    def end(self, code: str = "", reason: str = "") -> None:  # noqa: ARG002  # the reason has only one code
        """See `ScriptedStream`."""
        self.stream.end(Refusal(reason, "a part of the examination: come back") if reason else None)
        self.is_gone.set()

    def take_item(self, item: play_service_pb2.PlayRequestItem) -> None:
        """Keeps an item for the check."""
        if item.HasField("pong"):
            item.pong.number -= PING_BASE
        if not self.inbox.full():
            self.inbox.put_nowait(item)


class ExaminedStreams:
    """The streams of one bot during one check: a `StreamSource`."""

    def __init__(
        self, attendance: ExaminedAttendance, match_prefix: str, nothing_came: type[Exception]
    ) -> None:
        """Items of matches whose names do not begin with `match_prefix` are left from an earlier check, and dropped."""
        self.attendance = attendance
        self._match_prefix = match_prefix
        self._nothing_came = nothing_came
        self.lobbies: asyncio.Queue[Any] = asyncio.Queue()
        self.lobbies.put_nowait(ExaminedLobby(attendance))
        self.referees: asyncio.Queue[Any] = asyncio.Queue()
        self._referee: ExaminedReferee | None = None

    def take_item(self, stream: ExaminedPlay, item: play_service_pb2.PlayRequestItem) -> None:
        """Handles an item of the bot. The first item of another stream makes this stream the bot's."""
        if not item.HasField("pong") and not item.match.startswith(self._match_prefix):
            return
        if self._referee is None or self._referee.stream is not stream:
            if item.HasField("pong"):
                return
            self._referee = ExaminedReferee(stream, self._nothing_came)
            self.referees.put_nowait(self._referee)
        self._referee.take_item(item)


class ExaminedBots:
    """The bots that are examined by this process now. The items of their examinations pass by the tables."""

    def __init__(self) -> None:
        self._streams: dict[str, ExaminedStreams] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def begin_check(self, bot: str, streams: ExaminedStreams) -> None:
        """Sends the items of the bot to this check from now on."""
        self._streams[bot] = streams

    def end_examination(self, attendance: ExaminedAttendance) -> None:
        """Sends the items of the bot to no check of this attendance any more. A newer attendance may have begun one."""
        streams = self._streams.get(attendance.bot)
        if streams is not None and streams.attendance is attendance:
            del self._streams[attendance.bot]

    def take_item(self, stream: ExaminedPlay, item: play_service_pb2.PlayRequestItem) -> bool:
        """Takes an item that belongs to an examination; returns False for any other."""
        is_pong = item.HasField("pong")
        if is_pong and item.pong.number < PING_BASE:
            return False
        if not is_pong and not item.match.startswith(EXAMINATION_PREFIX):
            return False
        streams = self._streams.get(stream.bot)
        if streams is not None:
            streams.take_item(stream, item)
        return streams is not None
