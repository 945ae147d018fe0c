"""The load: one process that plays echo or matches as fast as it can, or at a given rate, and counts.

The same connections, tasks and writers serve both, so that what differs is the server alone. It reads
the servers' CPU from the system itself, at the same moments at which it reads its own counters.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import mean, quantiles
from typing import Any

import grpc
import picows
import wire
from processes import cpu_of_all_s, cpu_s, say

from seatwise.v1 import bot_service_pb2, bot_service_pb2_grpc, lobby_service_pb2
from seatwise.v1 import play_service_pb2 as pb

ECHO_STREAMS = 64
BOTS = 16
"""Each stream, of an echo or of a bot, has a connection of its own, as bots in different places have."""
SEATS = 4
TICK_S = 0.001
LOOK_S = 0.05
SET_UP = 0.95
"""Play begins when this part of the matches has its bots at the table."""
NO_MORE_S = 3.0
"""It also begins when no more bots have come to a table for so long, in seconds."""
SET_UP_WITHIN_S = 30
LONGEST_S = 25
LONGEST_CYCLE_S = 90
REQUEST_ID = b"00000000-0000-4000-8000-%012d"
MOVE = wire.submit(wire.head(b"matches/abcdefghijkm", 3), REQUEST_ID % 1, 100, b"\x01", is_arrange=False)
"""What goes to the echo: as long as a move."""


@dataclass(slots=True)
class Counts:
    """What has been done so far."""

    done: int = 0
    latencies: list[float] = field(default_factory=list)
    rejections: list[str] = field(default_factory=list)
    matches_ended: int = 0


class Pace:
    """Lets answers go once it is opened: at once, or evenly at a rate."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._is_open = asyncio.Event()
        self._ready: deque[Callable[[], None]] = deque()

    def answer(self, send: Callable[[], None]) -> None:
        """Sends now, or when its turn has come."""
        if self._rate or not self._is_open.is_set():
            self._ready.append(send)
        else:
            send()

    def open(self) -> None:
        """All is set up: play."""
        self._is_open.set()
        while self._ready and not self._rate:
            self._ready.popleft()()

    def slow_down(self, rate: float) -> None:
        """From now on evenly at this rate; `run` has to be started anew."""
        self._rate = rate

    async def run(self) -> None:
        """Sends what is due at each tick. Where nobody was ready the turn is lost."""
        await self._is_open.wait()
        loop = asyncio.get_running_loop()
        next_at = loop.time()
        while self._rate:
            await asyncio.sleep(TICK_S)
            now = loop.time()
            while next_at <= now:
                next_at += 1 / self._rate
                if self._ready:
                    self._ready.popleft()()


class Stream:
    """One bidi stream of raw bytes: a reader, and one writer that puts all that waits into one message."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._outbox: list[bytes] = []
        self._due = asyncio.Event()

    def send(self, item: bytes) -> None:
        """With the next message."""
        self._outbox.append(item)
        self._due.set()

    async def write_all(self) -> None:
        """The writer."""
        while True:
            await self._due.wait()
            self._due.clear()
            items, self._outbox = self._outbox, []
            await self._call.write(b"".join(items))

    async def read_all(self, take: Callable[[Any], None]) -> None:
        """The reader."""
        while (message := await self._call.read()) is not grpc.aio.EOF:
            take(message)
        raise ConnectionError(f"the server ended a stream: {await self._call.details()}")


class SocketCall(picows.WSListener):
    """A play stream by WebSocket, with the calls of gRPC that `Stream` makes."""

    def __init__(self) -> None:
        self._transport: picows.WSTransport | None = None
        self._unread: deque[bytes] = deque()
        self._arrived = asyncio.Event()

    @classmethod
    async def open(cls, address: str, token: str) -> SocketCall:
        """Connects."""
        headers = {"Authorization": f"Bearer {token}", "Sec-WebSocket-Protocol": "seatwise.v1.proto"}
        _, call = await picows.ws_connect(
            cls, f"{address}/v1/play", extra_headers=headers, use_aiofastnet=False
        )
        return call  # type: ignore[return-value]

    async def write(self, raw: bytes) -> None:
        """As gRPC's."""
        assert self._transport is not None
        self._transport.send(picows.WSMsgType.BINARY, raw)

    async def read(self) -> Any:
        """As gRPC's."""
        while not self._unread:
            self._arrived.clear()
            await self._arrived.wait()
        return self._unread.popleft()

    async def details(self) -> str:
        """As gRPC's."""
        return "closed"

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        """As picows calls it."""
        self._transport = transport

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """As picows calls it."""
        is_message = frame.msg_type == picows.WSMsgType.BINARY
        if is_message or frame.msg_type == picows.WSMsgType.CLOSE:
            self._unread.append(frame.get_payload_as_bytes() if is_message else grpc.aio.EOF)  # type: ignore[arg-type]
            self._arrived.set()
        if not is_message and frame.msg_type == picows.WSMsgType.PING:
            transport.send_pong(frame.get_payload_as_bytes())


class Echoes:
    """One message at a time on one stream."""

    def __init__(self, stream: Stream, pace: Pace, counts: Counts) -> None:
        self._stream, self._pace, self._counts = stream, pace, counts
        self._sent_at = 0.0
        pace.answer(self._send)

    def take(self, _: bytes) -> None:
        """The echo is back: the next one."""
        self._counts.done += 1
        self._counts.latencies.append(time.perf_counter() - self._sent_at)
        self._pace.answer(self._send)

    def _send(self) -> None:
        self._sent_at = time.perf_counter()
        self._stream.send(MOVE)


class Bot:
    """All seats of one bot, played without a mind: a legal card, by the number of the question."""

    def __init__(
        self,
        stream: Stream,
        pace: Pace,
        counts: Counts,
        sent_at: dict[bytes, float],
    ) -> None:
        self._stream, self._pace, self._counts = stream, pace, counts
        self._sent_at = sent_at
        """When the last move of each match was sent, by whichever bot."""
        self._answered: dict[tuple[bytes, int], int] = {}
        self._requests = 0

    @property
    def seats(self) -> int:
        """How many it has now."""
        return len(self._answered)

    def offered(self, response: lobby_service_pb2.AttendResponse) -> None:
        """Takes a seat that the lobby offers."""
        if response.HasField("offer"):
            match, seat = response.offer.match, response.offer.seat
            self._answered[match.encode(), seat] = 0
            sit = pb.Sit(nonce=os.urandom(32))
            item = pb.PlayRequestItem(match=match, seat=seat, sit=sit)
            self._stream.send(wire.in_request(item.SerializeToString()))

    def take(self, raw: bytes) -> None:
        """One message of the referee."""
        for item in wire.items(raw):
            if item.kind == wire.UPDATE:
                self._take_update(raw, item)
            elif item.kind == wire.ACCEPTED:
                self._counts.done += 1
            elif item.kind == wire.PING:
                self._stream.send(wire.pong(wire.number(raw, item)))
            elif item.kind == wire.ENDED:
                self._answered.pop((item.match, item.seat), None)
                self._sent_at.pop(item.match, None)
                self._counts.matches_ended += item.seat == 0
            elif item.kind == wire.REJECTED:
                self._counts.rejections.append(pb.MoveRejected.FromString(raw[item.start : item.end]).message)

    def _take_update(self, raw: bytes, item: wire.Item) -> None:
        prompt, cards, is_arrange = wire.question(raw, item)
        seat = item.match, item.seat
        if not prompt or self._answered.get(seat, prompt) >= prompt:
            return
        self._answered[seat] = prompt
        sent_at = self._sent_at.pop(item.match, None)
        if sent_at is not None:
            self._counts.latencies.append(time.perf_counter() - sent_at)
        if not is_arrange:
            cards = cards[prompt % len(cards) :]
        self._pace.answer(lambda: self._submit(seat, prompt, cards, is_arrange))

    def _submit(self, seat: tuple[bytes, int], prompt: int, cards: bytes, is_arrange: bool) -> None:
        self._requests += 1
        self._sent_at[seat[0]] = time.perf_counter()
        head, request_id = wire.head(*seat), REQUEST_ID % self._requests
        self._stream.send(wire.submit(head, request_id, prompt, cards, is_arrange))


async def wait_for_matches(count: Callable[[], float], wanted: int) -> None:
    """Returns when nearly all matches have their bots, or when no more come: three bots with free places make no match of four."""
    most, since = count(), time.perf_counter()
    async with asyncio.timeout(SET_UP_WITHIN_S):
        while most < SET_UP * wanted and (not most or time.perf_counter() < since + NO_MORE_S):
            await asyncio.sleep(LOOK_S)
            if count() > most:
                most, since = count(), time.perf_counter()


class Measured:
    """What is played, and how much of it has been done."""

    def __init__(self, args: argparse.Namespace, group: asyncio.TaskGroup) -> None:
        self._args = args
        self._group = group
        self._pace = Pace(args.rate)
        self._counts = Counts()
        group.create_task(self._pace.run())

    @property
    def _matches(self) -> float:
        """At the table now; 0 of an echo."""
        return 0.0

    async def measure(self) -> dict[str, Any]:
        """One window. Of matches, until as many have ended as are played at once: all that a match costs is in it."""
        counts, pids = self._counts, [*self._args.pids, os.getpid()]
        counts.latencies.clear()
        began, done, ended = time.perf_counter(), counts.done, counts.matches_ended
        before, all_before = [cpu_s(pid) for pid in pids], cpu_of_all_s()
        in_play = []
        while time.perf_counter() - began < self._args.seconds or self._is_early(done, ended, began):
            in_play.append(self._matches)
            await asyncio.sleep(LOOK_S)
        seconds, moves = time.perf_counter() - began, counts.done - done
        spent = [cpu_s(pid) - cpu for pid, cpu in zip(pids, before, strict=True)]
        cuts = quantiles(counts.latencies, n=100)
        return {
            "rate": moves / seconds,
            "cpu_us": [1e6 * cpu / moves for cpu in spent],
            "cores": [cpu / seconds for cpu in spent],
            "other_cores": max(0.0, cpu_of_all_s() - all_before - sum(spent)) / seconds,
            "p50_ms": 1e3 * cuts[49],
            "p99_ms": 1e3 * cuts[98],
            "matches": mean(in_play),
            "matches_ended": counts.matches_ended - ended,
            "rejections": counts.rejections[:3],
        }

    def _is_early(self, done: int, ended: int, began: float) -> bool:
        """Whether most of the matches that began with the window are still being played."""
        seconds, count = time.perf_counter() - began, self._args.matches
        if self._args.cycle:
            return seconds < LONGEST_CYCLE_S and self._counts.done - done < count * self._args.cycle
        is_echo = self._args.what == "echo"
        return not is_echo and seconds < LONGEST_S and self._counts.matches_ended - ended < count

    async def warm_up(self) -> None:
        """Some time; or to the middle of the matches, so that what follows has one end and one beginning of each."""
        await asyncio.sleep(self._args.warm)
        began, enough = time.perf_counter(), self._args.matches * self._args.cycle / 2
        while self._counts.done < enough:
            if time.perf_counter() > began + LONGEST_CYCLE_S:
                return
            await asyncio.sleep(LOOK_S)


class Load(Measured):
    """Echoes, or matches of Seatwise."""

    def __init__(self, args: argparse.Namespace, group: asyncio.TaskGroup) -> None:
        super().__init__(args, group)
        self._bots: list[Bot] = []
        # gRPC would make one connection of them all if it were let.
        options = [("grpc.use_local_subchannel_pool", 1)]
        count = ECHO_STREAMS if args.what == "echo" else BOTS
        self._channels = [grpc.aio.insecure_channel(args.address, options=options) for _ in range(count)]

    @property
    def _matches(self) -> float:
        return sum(bot.seats for bot in self._bots) / SEATS

    async def start_echoes(self) -> None:
        """One on each stream."""
        for channel in self._channels:
            stream = Stream(channel.stream_stream("/bench.Echo/Echo")())
            self._run(stream, Echoes(stream, self._pace, self._counts).take)
        self._pace.open()

    async def start_matches(self) -> None:
        """Lets the bots attend, waits until nearly all tables are full, and plays; ended matches are replaced."""
        sent_at: dict[bytes, float] = {}
        for number, channel in enumerate(self._channels):
            token = await self._register(channel, f"load-{number}")
            metadata = (("authorization", f"Bearer {token}"),)
            if self._args.ws:
                stream = Stream(await SocketCall.open(self._args.ws, token))
            else:
                stream = Stream(channel.stream_stream("/seatwise.v1.PlayService/Play")(metadata=metadata))
            bot = Bot(stream, self._pace, self._counts, sent_at)
            self._bots.append(bot)
            self._run(stream, bot.take)
            self._group.create_task(self._attend(channel, metadata, bot))
        await wait_for_matches(lambda: self._matches, self._args.matches)
        self._pace.open()

    def _run(self, stream: Stream, take: Callable[[bytes], None]) -> None:
        self._group.create_task(stream.write_all())
        self._group.create_task(stream.read_all(take))

    async def _register(self, channel: grpc.aio.Channel, bot: str) -> str:
        stub: Any = bot_service_pb2_grpc.BotServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
        metadata = (("authorization", f"Bearer {self._args.admin}"),)
        answer = await stub.RegisterBot(bot_service_pb2.RegisterBotRequest(bot=bot), metadata=metadata)
        return str(answer.token)

    async def _attend(self, channel: grpc.aio.Channel, metadata: Any, bot: Bot) -> None:
        call: Any = channel.stream_stream(
            "/seatwise.v1.LobbyService/Attend",
            request_serializer=lobby_service_pb2.AttendRequest.SerializeToString,
            response_deserializer=lobby_service_pb2.AttendResponse.FromString,
        )(metadata=metadata)
        most = self._args.matches * SEATS // BOTS
        await call.write(lobby_service_pb2.AttendRequest(queues=["casual"], max_matches=most))
        await Stream(call).read_all(bot.offered)


async def main(args: argparse.Namespace) -> None:
    """Plays, measures, tells."""
    async with asyncio.TaskGroup() as group:
        load = Load(args, group)
        await (load.start_echoes() if args.what == "echo" else load.start_matches())
        await measure_and_end(load)


async def measure_and_end(load: Measured) -> None:
    """Tells what it found, and ends this process."""
    await load.warm_up()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 250, 50)  # as the server does it
    say(await load.measure())
    os._exit(0)  # the streams need not be closed in peace: the server is ended next


def window_arguments() -> argparse.ArgumentParser:
    """What every load is told of its window."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--matches", type=int, default=64, help="how many at once")
    parser.add_argument(
        "--rate", type=float, default=0, help="messages offered a second; 0: as many as can be"
    )
    parser.add_argument("--warm", type=float, default=0.5)
    parser.add_argument("--seconds", type=float, default=3, help="at least")
    parser.add_argument(
        "--cycle",
        type=int,
        default=0,
        help="moves of a match: measure from the middle of one to that of the next",
    )
    parser.add_argument("--pids", type=int, nargs="*", default=[], help="whose CPU is read")
    return parser


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, parents=[window_arguments()])
    parser.add_argument("what", choices=["echo", "matches"])
    parser.add_argument("address")
    parser.add_argument("--admin", default="", help="the admin token")
    parser.add_argument("--ws", default="", help="the address for WebSockets, by which bots then play")
    asyncio.run(main(parser.parse_args()))
