"""Raw clients: bytes and messages over one connection, nothing of the SDK."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from harness.items import item, message
from seatwise.v1 import (
    bot_service_pb2_grpc,
    error_pb2,
    lobby_service_pb2,
    lobby_service_pb2_grpc,
    match_service_pb2,
    match_service_pb2_grpc,
    play_service_pb2,
)

SOON_S = 10.0
"""What is to happen soon happens within this; a test that waits longer fails."""

PLAY = "/seatwise.v1.PlayService/Play"


@dataclass(frozen=True, slots=True)
class Refused:
    """How a call ended."""

    code: str
    reason: str
    """Of its one ErrorInfo; empty if it had none."""
    message: str

    @classmethod
    def of(cls, error: grpc.aio.AioRpcError) -> Refused:
        """What an RPC error says."""
        return cls(error.code().name, _reason(error), error.details() or "")


_MORE_DETAILS = {
    grpc.StatusCode.INVALID_ARGUMENT: ["BadRequest"],
    grpc.StatusCode.RESOURCE_EXHAUSTED: ["RetryInfo"],
}
"""The details after the first one, by code."""


def _reason(error: grpc.aio.AioRpcError) -> str:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            detail, *more = error_pb2.Status.FromString(value).details
            info = error_pb2.ErrorInfo.FromString(detail.value)
            assert (detail.type_url, info.domain) == ("type.googleapis.com/google.rpc.ErrorInfo", "seatwise")
            assert [it.type_url.rpartition(".")[2] for it in more] == _MORE_DETAILS.get(error.code(), [])
            assert info.reason != "INVALID_ARGUMENT" or info.metadata["field"]
            return info.reason
    return ""


async def refusal_of(call: Awaitable[object]) -> Refused:
    """How this call was refused; it must be."""
    try:
        async with asyncio.timeout(SOON_S):
            answer = await call
    except grpc.aio.AioRpcError as error:
        return Refused.of(error)
    raise AssertionError(f"it was answered: {answer!r:.200}")


class StreamEnded(Exception):
    """The stream is over; says how."""

    def __init__(self, how: Refused) -> None:
        super().__init__(f"{how.code} {how.reason} {how.message}")
        self.how = how


class Stream:
    """A raw Play stream. What comes in is sorted by match and seat; pings are answered."""

    def __init__(self, channel: grpc.aio.Channel, token: str, *, reads: bool, pongs: bool) -> None:
        call = channel.stream_stream(PLAY, None, None)
        self._call = call(metadata=_metadata(token))
        self._pongs = pongs
        self._queues: defaultdict[tuple[str, int], asyncio.Queue[Any]] = defaultdict(asyncio.Queue)
        self.received: list[play_service_pb2.PlayResponseItem] = []
        """All items, pings too."""
        self.how: Refused | None = None
        """How it ended."""
        self._ended = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._reader = asyncio.create_task(self.read()) if reads else None

    async def send(self, *items: play_service_pb2.PlayRequestItem) -> None:
        """One message with these items."""
        await self.send_raw(message(items))

    async def send_raw(self, raw: bytes) -> None:
        """One message of any bytes."""
        async with self._one_at_a_time:  # two writers of one stream break it
            await self._call.write(raw)

    async def hang_up(self) -> None:
        """No more from us; the server ends the stream."""
        await self._call.done_writing()

    async def receive(self, match: str = "", seat: int = 0, within_s: float = SOON_S) -> Any:
        """The next item for this seat; rejections of what names no seat are at "" and 0. `StreamEnded`."""
        queue = self._queues[match, seat]
        if self._ended.is_set() and queue.empty():
            assert self.how is not None
            raise StreamEnded(self.how)
        async with asyncio.timeout(within_s):
            found = await queue.get()
        if isinstance(found, StreamEnded):
            raise found
        return found

    async def end(self, within_s: float = SOON_S) -> Refused:
        """How the stream ends, which it must do soon."""
        async with asyncio.timeout(within_s):
            await self._ended.wait()
        assert self.how is not None
        return self.how

    async def read(self) -> None:
        """Reads to the end; started by itself unless the stream was opened with `reads=False`."""
        try:
            while (raw := await self._call.read()) is not grpc.aio.EOF:
                for found in play_service_pb2.PlayResponse.FromString(raw).items:
                    await self._take(found)
            self._over(Refused((await self._call.code()).name, "", await self._call.details() or ""))
        except grpc.aio.AioRpcError as error:
            self._over(Refused.of(error))
        except asyncio.CancelledError:
            self._over(Refused("CANCELLED", "", "by this client"))

    async def _take(self, found: play_service_pb2.PlayResponseItem) -> None:
        self.received.append(found)
        if found.HasField("ping"):
            if self._pongs:
                pong = play_service_pb2.Pong(number=found.ping.number)
                # If the end came with the ping, grpc is to notice: a write after it hides why the stream ended.
                await asyncio.sleep(0)
                with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
                    await self.send(item("", 0, pong=pong))
        else:
            self._queues[found.match, found.seat].put_nowait(found)

    def _over(self, how: Refused) -> None:
        self.how = how
        self._ended.set()
        for queue in self._queues.values():
            queue.put_nowait(StreamEnded(how))

    async def close(self) -> None:
        """Drops the link without a word."""
        self._call.cancel()
        if self._reader:
            await asyncio.gather(self._reader, return_exceptions=True)


class Attending:
    """A raw Attend stream."""

    def __init__(self, channel: grpc.aio.Channel, token: str) -> None:
        self._call = lobby_service_pb2_grpc.LobbyServiceStub(channel).Attend(metadata=_metadata(token))
        self._start()

    def _start(self) -> None:
        self.offers: list[lobby_service_pb2.SeatOffer] = []
        """All so far."""
        self.closed: list[lobby_service_pb2.SeatClosed] = []
        """All so far."""
        self.places: list[tuple[str, int]] = []
        """Where it stood in its queues, as it was told."""
        self.taken_off: list[lobby_service_pb2.TakenOff] = []
        """The ladders that it was told it is off."""
        self.how: Refused | None = None
        """How it ended."""
        self.welcomes: list[lobby_service_pb2.Welcome] = []
        """One for each limit that was heard."""
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    async def say(self, max_matches: int, queues: Sequence[str] = ()) -> None:
        """The first request, or a new limit."""
        await self._call.write(lobby_service_pb2.AttendRequest(queues=queues, max_matches=max_matches))

    async def welcome(self, count: int = 1) -> lobby_service_pb2.Welcome:
        """The first response, or that many of them: the last."""
        found = await self.until(lambda: len(self.welcomes) >= count and self.welcomes)
        welcome: lobby_service_pb2.Welcome = found[-1]
        return welcome

    async def offer(
        self, match: str = "", epoch: int = 0, within_s: float = SOON_S
    ) -> lobby_service_pb2.SeatOffer:
        """The newest offer, of this match, of at least this epoch; any if nothing is named."""
        found = await self.until(
            lambda: [each for each in self.offers if match in ("", each.match) and each.epoch >= epoch],
            within_s,
        )
        return found[-1]

    async def until(self, look: Callable[[], Any], within_s: float = SOON_S) -> Any:
        """What `look` finds, as soon as it finds something; looks again at each response."""
        async with asyncio.timeout(within_s), self._news:
            while not (found := look()):
                if self.how:
                    raise StreamEnded(self.how)
                await self._news.wait()
        return found

    async def end(self, within_s: float = SOON_S) -> Refused:
        """How the stream ends, which it must do soon."""
        found: Refused = await self.until(lambda: self.how, within_s)
        return found

    async def _read(self) -> None:
        try:
            async for response in self._call:
                await self._take(response)
            self.how = Refused((await self._call.code()).name, "", await self._call.details() or "")
        except grpc.aio.AioRpcError as error:
            self.how = Refused.of(error)
        except asyncio.CancelledError:
            self.how = Refused("CANCELLED", "", "by this client")
        async with self._news:
            self._news.notify_all()

    async def _take(self, response: lobby_service_pb2.AttendResponse) -> None:
        match response.WhichOneof("event"):
            case "welcome":
                self.welcomes.append(response.welcome)
            case "offer":
                self.offers.append(response.offer)
            case "closed":
                self.closed.append(response.closed)
            case "queued":
                self.places.append((response.queued.queue, response.queued.place))
            case "taken_off":
                self.taken_off.append(response.taken_off)
        async with self._news:
            self._news.notify_all()

    async def close(self) -> None:
        """Drops the link without a word."""
        self._call.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)


class Wire:
    """One connection to a server with one token, or none."""

    def __init__(
        self, address: str, token: str = "", bot: str = "", channel: grpc.aio.Channel | None = None
    ) -> None:
        self.address = address
        self.token = token
        self.bot = bot
        """Format: bots/{bot}/versions/{version}."""
        self.channel = channel or grpc.aio.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 50),
                              ("grpc.max_reconnect_backoff_ms", 200),
                              # What gRPC calls so is also how long an attempt to connect may take.
                              ("grpc.min_reconnect_backoff_ms", 5_000)],
        )  # fmt: skip
        self.bots = bot_service_pb2_grpc.BotServiceStub(self.channel)
        self.matches = match_service_pb2_grpc.MatchServiceStub(self.channel)
        self.link: Callable[[str], Any] | None = None
        """Makes the link of a path for streams by WebSocket; None for streams over gRPC."""
        self._open: list[Stream | Attending] = []

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """With the token."""
        return _metadata(self.token)

    def play(self, *, reads: bool = True, pongs: bool = True) -> Stream:
        """A new Play stream."""
        stream: Stream
        if self.link:
            from harness.websocket import SocketStream  # which imports this

            stream = SocketStream(self.link("/v1/play"), reads=reads, pongs=pongs)
        else:
            stream = Stream(self.channel, self.token, reads=reads, pongs=pongs)
        self._open.append(stream)
        return stream

    async def attend(self, queues: Sequence[str] = (), max_matches: int = 100) -> Attending:
        """Present, and welcomed."""
        attending = self.attending()
        await attending.say(max_matches, queues)
        await attending.welcome()
        return attending

    def attending(self) -> Attending:
        """A new Attend stream on which nothing was said yet."""
        attending: Attending
        if self.link:
            from harness.websocket import SocketAttending  # which imports this

            attending = SocketAttending(self.link("/v1/attend"))
        else:
            attending = Attending(self.channel, self.token)
        self._open.append(attending)
        return attending

    async def raw(self, method: str, body: bytes) -> bytes:
        """A unary call of any bytes, e.g. of "/seatwise.v1.MatchService/GetMatch"."""
        call = self.channel.unary_unary(method, None, None)
        answer: bytes = await call(body, metadata=self.metadata, timeout=SOON_S)
        return answer

    def watch(self, name: str, *, all_positions: bool = False) -> Any:
        """The WatchMatch call."""
        request = match_service_pb2.WatchMatchRequest(name=name, all_positions=all_positions)
        return self.matches.WatchMatch(request, metadata=self.metadata)

    async def drop(self) -> None:
        """Loses the link with all its streams; the object can be used no more."""
        for stream in self._open:
            await stream.close()
        await self.channel.close()


def _metadata(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),) if token else ()
