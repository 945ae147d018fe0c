"""The hostile bots of `seatwise stress`. Each kind harms the server in one way, within a time and a count.

They use raw streams, because the link of the SDK keeps to the protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from seatwise.bot import Bot
from seatwise.link.dialing import open_channel
from seatwise.link.endpoint import Endpoint, resolve_endpoint
from seatwise.link.security import Security
from seatwise.link.wire import credentials_of
from seatwise.stress.honest import play_bot
from seatwise.v1.bot_service_pb2 import GetBotRequest
from seatwise.v1.lobby_service_pb2 import AttendRequest
from seatwise.v1.play_service_pb2 import PlayRequest, PlayRequestItem, Pong, Resign

MOST_ACTS: Final = 20_000
"""The most messages, calls or connections of one hostile bot."""
MANY_ITEMS: Final = 10_000
"""Items in one message."""
MANY_STREAMS: Final = 50
"""Streams of one bot, or open connections, at once."""
CALLS_AT_ONCE: Final = 50
HOSTILE_PAUSE_S: Final = 0.05
"""Between two messages of a bot that does not send as fast as it can, in seconds."""
ROUND_S: Final = 1.0
"""Between two rounds of many streams or connections, in seconds."""
DAWDLE_SHARE: Final = 0.8
"""The share of its free time that a dawdling bot uses."""

_ATTEND_METHOD = "/seatwise.v1.LobbyService/Attend"
_PLAY_METHOD = "/seatwise.v1.PlayService/Play"
_GET_BOT_PATH = "/seatwise.v1.BotService/GetBot"


@dataclass(slots=True)
class HostileBot:
    """A registered bot that does harm, and how often it has done so."""

    address: str
    token: str
    security: Security
    acts: int = 0
    """Messages, calls or connections so far."""
    ends: dict[str, int] = field(default_factory=dict)
    """How often the server ended a stream or a call of it, by status."""

    @property
    def endpoint(self) -> Endpoint:
        """The server."""
        return resolve_endpoint(self.address, insecure=self.security.insecure)

    @property
    def may_act(self) -> bool:
        """Whether the count allows one more act."""
        return self.acts < MOST_ACTS

    def count_end(self, status: str) -> None:
        """Note that the server ended a stream or a call with this status."""
        self.ends[status] = self.ends.get(status, 0) + 1

    @asynccontextmanager
    async def open_stream(self, path: str) -> AsyncIterator[Any]:
        """Open a raw stream, whose messages are bytes. Its end by the server is counted and raises nothing."""
        async with await open_channel(self.endpoint, self.security) as channel:
            stream: Any = channel.stream_stream(path)(metadata=credentials_of(self.token))
            try:
                yield stream
            except grpc.aio.AioRpcError as ended:
                self.count_end(ended.code().name)
            except asyncio.InvalidStateError:  # written to a stream that the server has ended
                self.count_end((await stream.code()).name)
            finally:
                stream.cancel()


async def never_read(bot: HostileBot) -> None:
    """Ask for answers, and read none of them."""
    nonsense = PlayRequest(items=[PlayRequestItem(match="x" * 64)] * 50).SerializeToString()
    while bot.may_act:
        async with bot.open_stream(_PLAY_METHOD) as stream:
            while bot.may_act:
                await stream.write(nonsense)
                bot.acts += 1
        await asyncio.sleep(HOSTILE_PAUSE_S)


async def send_many_items(bot: HostileBot) -> None:
    """Send ten thousand items in one message, again and again, and read the answers."""
    item = PlayRequestItem(match="matches/none", resign=Resign())
    many = PlayRequest(items=[item] * MANY_ITEMS).SerializeToString()
    while bot.may_act:
        async with bot.open_stream(_PLAY_METHOD) as stream:
            reader = asyncio.create_task(_read_to_the_end(stream))
            try:
                while bot.may_act and not reader.done():
                    await stream.write(many)
                    bot.acts += 1
                    await asyncio.sleep(HOSTILE_PAUSE_S)
            finally:
                reader.cancel()
        await asyncio.sleep(HOSTILE_PAUSE_S)


async def open_many_streams(bot: HostileBot) -> None:
    """Open fifty streams of one bot at once, of which each replaces the one before."""
    while bot.may_act:
        await asyncio.gather(*[_hold_stream(bot, _PLAY_METHOD) for _ in range(MANY_STREAMS)])


async def stay_silent(bot: HostileBot) -> None:
    """Open the streams of a bot that is present, and never say a word."""
    while bot.may_act:
        await asyncio.gather(*[_hold_stream(bot, path) for path in (_ATTEND_METHOD, _PLAY_METHOD)])


async def lie_in_pongs(bot: HostileBot) -> None:
    """Answer pings that nobody has sent, with wrong numbers, and never the right one."""
    wrong = [PlayRequestItem(pong=Pong(number=number)) for number in (0, -1, 2**62, *range(1000, 1200))]
    lies = PlayRequest(items=wrong).SerializeToString()
    while bot.may_act:
        async with bot.open_stream(_PLAY_METHOD) as stream:
            while bot.may_act:
                await stream.write(lies)
                bot.acts += 1
                await asyncio.sleep(HOSTILE_PAUSE_S)
        await asyncio.sleep(HOSTILE_PAUSE_S)


async def speak_no_http2(bot: HostileBot) -> None:
    """Open connections, and send bytes that are no HTTP/2, slowly."""
    while bot.may_act:
        await asyncio.gather(*[_send_garbage(bot) for _ in range(MANY_STREAMS)])


async def flood_calls(bot: HostileBot) -> None:
    """Call a method as fast as it is answered, fifty calls at once."""
    request = GetBotRequest(name="bots/none/versions/1").SerializeToString()
    async with await open_channel(bot.endpoint, bot.security) as channel:
        call: Any = channel.unary_unary(_GET_BOT_PATH)
        await asyncio.gather(*[_call_without_end(bot, call, request) for _ in range(CALLS_AT_ONCE)])


async def flood_attendance(bot: HostileBot) -> None:
    """Change the limit of an attendance as fast as the transport takes it."""
    limits = [AttendRequest(max_matches=number).SerializeToString() for number in (0, 1)]
    while bot.may_act:
        async with bot.open_stream(_ATTEND_METHOD) as stream:
            while bot.may_act:
                await stream.write(limits[bot.acts % 2])
                bot.acts += 1
        await asyncio.sleep(HOSTILE_PAUSE_S)


async def dawdle(bot: HostileBot) -> None:
    """Play, and use most of the time for each move."""
    await play_bot(lambda: DawdlingBot(bot), bot.address, bot.token, bot.security)


async def never_move(bot: HostileBot) -> None:
    """Sit down, and answer no question."""
    await play_bot(lambda: MotionlessBot(bot), bot.address, bot.token, bot.security)


HOSTILE_KINDS: Final[dict[str, Callable[[HostileBot], Awaitable[None]]]] = {
    "never-reads": never_read,
    "many-items": send_many_items,
    "many-streams": open_many_streams,
    "silent": stay_silent,
    "motionless": never_move,
    "dawdling": dawdle,
    "lying-pongs": lie_in_pongs,
    "no-http2": speak_no_http2,
    "calls-flood": flood_calls,
    "attendance-flood": flood_attendance,
}
"""Each kind by its name, as in `--only`."""

SEATED_KINDS: Final = frozenset({"motionless", "dawdling"})
"""The kinds that play matches, two bots of a kind against each other."""


class DawdlingBot(Bot):
    """Answers when most of its time is over."""

    def __init__(self, account: HostileBot) -> None:
        self._account = account

    async def choose(self, view: Any) -> Any:
        """Wait, and play the first legal card."""
        await asyncio.sleep(self.time.move_ms / 1000 * DAWDLE_SHARE)
        self._account.acts += 1
        return view.legal_cards[0]


class MotionlessBot(Bot):
    """Answers nothing."""

    def __init__(self, account: HostileBot) -> None:
        self._account = account

    async def choose(self, view: Any) -> Any:  # noqa: ARG002  # no answer needs no view
        """Wait without end."""
        self._account.acts += 1
        await asyncio.Event().wait()


async def _read_to_the_end(stream: Any) -> None:
    with suppress(grpc.aio.AioRpcError):
        while await stream.read() is not grpc.aio.EOF:
            pass


async def _hold_stream(bot: HostileBot, path: str) -> None:
    bot.acts += 1
    async with bot.open_stream(path) as stream:
        with suppress(TimeoutError):
            async with asyncio.timeout(ROUND_S):
                while await stream.read() is not grpc.aio.EOF:
                    pass
                bot.count_end((await stream.code()).name)


async def _send_garbage(bot: HostileBot) -> None:
    bot.acts += 1
    try:
        reader, writer = await _connect(bot.endpoint)
    except OSError:
        bot.count_end("NOT_CONNECTED")
        await asyncio.sleep(ROUND_S)
        return
    try:
        for part in (b"GET / HTTP/1.1\r\n", b"\xff" * 4096, b"PRI * HTTP/2.0\r\n\r\nno"):
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(ROUND_S / 3)
        if reader.at_eof():
            bot.count_end("HUNG_UP")
    except OSError:
        bot.count_end("HUNG_UP")
    finally:
        writer.close()


async def _connect(endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if endpoint.target.startswith("unix:"):
        return await asyncio.open_unix_connection(endpoint.target.removeprefix("unix:").removeprefix("//"))
    return await asyncio.open_connection(endpoint.host, endpoint.port)


async def _call_without_end(bot: HostileBot, call: Any, request: bytes) -> None:
    while bot.may_act:
        bot.acts += 1
        try:
            await call(request, metadata=credentials_of(bot.token))
        except grpc.aio.AioRpcError as refused:
            bot.count_end(refused.code().name)
