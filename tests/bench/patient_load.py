"""A load of created matches that have all the time in the world, wherever their referees are.

Tells two lines: when all bots are there and nothing is played yet, and when the window is over. Between them
it waits for a line, so that the parent can look at the servers' memory.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sys
from typing import Any

import grpc
import load
from load import Bot, Load, Stream
from processes import say

from seatwise.v1 import lobby_service_pb2, match_service_pb2, match_service_pb2_grpc, time_control_pb2

HOUR_MS = 3_600_000
AT_ONCE = 32
"""Matches that are created at the same time."""
MOST_SEATS = 1000
"""Of one bot."""


class Traveller(Bot):
    """A bot that goes wherever it is offered a seat, with one stream for each referee."""

    def __init__(self, number: int, patient: Patient) -> None:
        super().__init__(patient.nowhere, patient.pace, patient.counts, patient.sent_at)
        self._number = number
        self._patient = patient
        self._streams: dict[str, Stream] = {}
        self._at: dict[bytes, Stream] = {}
        """The stream of each match."""
        self.metadata: Any = ()

    def offered(self, response: lobby_service_pb2.AttendResponse) -> None:
        """Goes where the seat is, and sits down."""
        if response.HasField("offer"):
            address = response.offer.address or self._patient.address
            if address not in self._streams:
                self._streams[address] = self._patient.stream(address, self)
            self._stream = self._at[response.offer.match.encode()] = self._streams[address]
            super().offered(response)

    def take(self, raw: bytes, stream: Stream | None = None) -> None:
        """One message; what is not about a match is answered where it came from."""
        self._stream = stream or self._stream
        super().take(raw)

    def _submit(self, seat: tuple[bytes, int], prompt: int, cards: bytes, is_arrange: bool) -> None:
        self._stream = self._at[seat[0]]
        super()._submit(seat, prompt, cards, is_arrange)


class Patient(Load):
    """So many matches between these bots, played at a pace."""

    def __init__(self, args: argparse.Namespace, group: asyncio.TaskGroup) -> None:
        super().__init__(args, group)
        self.address = args.address
        self.pace, self.counts = self._pace, self._counts
        self.sent_at: dict[bytes, float] = {}
        self.nowhere: Any = None
        self._args = args

    def stream(self, address: str, bot: Traveller) -> Stream:
        """A new one, on a connection of its own."""
        channel = grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self._channels.append(channel)
        call = channel.stream_stream("/seatwise.v1.PlayService/Play")(metadata=bot.metadata)
        stream = Stream(call)
        self._group.create_task(stream.write_all())
        self._group.create_task(stream.read_all(lambda raw: bot.take(raw, stream)))
        return stream

    async def attend_all(self) -> None:
        """All bots are present, and each has a stream to the referees that it is told of."""
        for number, channel in enumerate(self._channels[: load.BOTS]):
            bot = Traveller(number, self)
            token = await self._register(channel, f"load-{number}")
            bot.metadata = (("authorization", f"Bearer {token}"),)
            self._bots.append(bot)
            self._group.create_task(self._attend(channel, bot.metadata, bot))
        for address in self._args.referees or [self.address]:
            for bot in self._bots:
                bot._streams[address] = self.stream(address, bot)  # type: ignore[attr-defined]

    async def _attend(self, channel: grpc.aio.Channel, metadata: Any, bot: Bot) -> None:
        call: Any = channel.stream_stream(
            "/seatwise.v1.LobbyService/Attend",
            request_serializer=lobby_service_pb2.AttendRequest.SerializeToString,
            response_deserializer=lobby_service_pb2.AttendResponse.FromString,
        )(metadata=metadata)
        await call.write(lobby_service_pb2.AttendRequest(queues=[], max_matches=MOST_SEATS))
        await Stream(call).read_all(bot.offered)

    async def create_all(self) -> None:
        """All matches, and all bots sit at them."""
        numbers = itertools.cycle(range(load.BOTS))
        tables = [
            [f"bots/load-{next(numbers)}/versions/1" for _ in range(self._args.seats)]
            for _ in range(self._args.matches)
        ]
        turn = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*[self._create(bots, turn) for bots in tables])
        async with asyncio.timeout(self._args.set_up_within):
            while sum(bot.seats for bot in self._bots) < self._args.seats * self._args.matches:  # noqa: ASYNC110
                await asyncio.sleep(load.LOOK_S)

    async def _create(self, bots: list[str], turn: asyncio.Semaphore) -> None:
        request = match_service_pb2.CreateMatchRequest(
            game="games/ugo",
            bots=bots,
            time_control=time_control_pb2.TimeControl(
                free_ms={"card": HOUR_MS, "arrange": HOUR_MS}, setup_ms=HOUR_MS
            ),
        )
        stub: Any = match_service_pb2_grpc.MatchServiceStub(self._channels[0])  # type: ignore[no-untyped-call]  # generated
        metadata = (("authorization", f"Bearer {self._args.admin}"),)
        async with turn:
            await stub.CreateMatch(request, metadata=metadata, timeout=60)

    async def play(self) -> None:
        """At once until the matches are under way, then at the pace."""
        self._pace.slow_down(0)
        self._pace.open()
        while self._counts.done < self._args.first * self._args.matches:  # noqa: ASYNC110  # nobody counts for us
            await asyncio.sleep(load.LOOK_S)
        self._pace.slow_down(self._args.rate)
        self._group.create_task(self._pace.run())

    def _is_early(self, *_: float) -> bool:
        return False

    @property
    def _matches(self) -> float:
        return sum(bot.seats for bot in self._bots) / self._args.seats


async def main(args: argparse.Namespace) -> None:
    """Attends, waits; creates, waits; plays, measures, tells."""
    load.BOTS = args.bots
    async with asyncio.TaskGroup() as group:
        patient = Patient(args, group)
        await patient.attend_all()
        await asyncio.sleep(args.warm)
        say({"bots": args.bots})
        await _told()
        await patient.create_all()
        await patient.play()
        await asyncio.sleep(args.warm)
        say(await patient.measure())
        await _told()
        os._exit(0)  # the streams need not be closed in peace: the servers are ended next


async def _told() -> None:
    """The parent has looked at what it wanted to see."""
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="of the lobby and gateway")
    parser.add_argument("--admin", required=True, help="the admin token")
    parser.add_argument("--referees", nargs="*", default=[], help="where streams are opened at once")
    parser.add_argument("--matches", type=int, default=64)
    parser.add_argument("--seats", type=int, default=2)
    parser.add_argument("--bots", type=int, default=16)
    parser.add_argument("--rate", type=float, required=True, help="moves offered a second, by all matches")
    parser.add_argument("--first", type=float, default=0, help="moves of each match before that, on average")
    parser.add_argument("--warm", type=float, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--set-up-within", type=float, default=240)
    parser.add_argument("--pids", type=int, nargs="*", default=[], help="whose CPU is read")
    asyncio.run(main(parser.parse_args(namespace=argparse.Namespace(what="matches"))))
