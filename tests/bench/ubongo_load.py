"""A load of builders: one process whose bots solve and call in as many matches at once as wanted, and count rounds.

A seat lays its first card, then the best that the solver has found, and calls, all in one message; thinking is
done here, so that the server's CPU is the referee's alone. Matches are over in a moment and new ones take a
while to be paired, so bots take more than are to be at the table.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import time
from collections import Counter
from statistics import quantiles
from typing import Any

import grpc
import wire
from load import BOTS, LOOK_S, SEATS, Pace, Stream, wait_for_matches
from processes import cpu_of_all_s, cpu_s, say

from seatwise.codec.ubongo import decode_view, encode_layout
from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.samples.ubongo_solver import solve
from seatwise.v1 import bot_service_pb2, bot_service_pb2_grpc, lobby_service_pb2
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.games.ubongo import GOAL, UbongoView

QUEUE = "casual-ubongo"
SPARE = 2
LATER = (pb.MoveRejected.REASON_STALE, pb.MoveRejected.REASON_MATCH_OVER)
"""What a call is told that came after another's: no fault."""

Seat = tuple[bytes, int]


class Found:
    """What has been done so far."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.decided_s: list[float] = []
        """From the first call of a round until a seat was shown the next."""
        self.rejections: list[str] = []
        self.called_at: dict[tuple[bytes, int], float] = {}
        """By match and prompt, the first call."""


class Builder:
    """All seats of one bot."""

    def __init__(self, stream: Stream, pace: Pace, found: Found) -> None:
        self._stream, self._pace, self._found = stream, pace, found
        self._prompts: dict[Seat, int] = {}
        self._requests = 0

    @property
    def seats(self) -> int:
        """How many it has now."""
        return len(self._prompts)

    def offered(self, response: lobby_service_pb2.AttendResponse) -> None:
        """Takes a seat that the lobby offers."""
        if response.HasField("offer"):
            match, seat = response.offer.match, response.offer.seat
            self._prompts[match.encode(), seat] = 0
            self._send(pb.PlayRequestItem(match=match, seat=seat, sit=pb.Sit(nonce=os.urandom(32))))

    def take(self, raw: bytes) -> None:
        """One message of the referee."""
        for item in wire.items(raw):
            body, seat = raw[item.start : item.end], (item.match, item.seat)
            if item.kind == wire.UPDATE:
                self._shown(seat, pb.Update.FromString(body))
            elif item.kind == wire.PING:
                self._stream.send(wire.pong(wire.number(raw, item)))
            elif item.kind == wire.ENDED:
                self._over(seat)
                self._prompts.pop(seat, None)
                self._found.done["matches"] += item.seat == 0
            elif item.kind == wire.REJECTED:
                self._rejected(pb.MoveRejected.FromString(body))

    def _shown(self, seat: Seat, update: pb.Update) -> None:
        if update.to_act and update.prompt > self._prompts.get(seat, update.prompt):
            if self._prompts[seat]:
                self._over(seat)
            self._prompts[seat] = update.prompt
            self._pace.answer(lambda: self._build(seat, update.prompt, decode_view(update.ubongo)))

    def _build(self, seat: Seat, prompt: int, view: UbongoView) -> None:
        first, *_, best = solve(view.hand)
        for layout in (first, best):
            self._submit(seat, prompt, ubongo_pb2.Move(lay=encode_layout(layout)))
        if len(best) >= GOAL:
            self._found.called_at.setdefault((seat[0], prompt), time.perf_counter())
            self._submit(seat, prompt, ubongo_pb2.Move(call=ubongo_pb2.Call()))
        else:
            self._submit(seat, prompt, ubongo_pb2.Move(offer_end=ubongo_pb2.OfferEnd(on=True)))

    def _submit(self, seat: Seat, prompt: int, move: ubongo_pb2.Move) -> None:
        self._requests += 1
        asked = pb.SubmitMove(request_id=f"r{self._requests}", prompt=prompt, ubongo=move)
        self._send(pb.PlayRequestItem(match=seat[0].decode(), seat=seat[1], submit_move=asked))

    def _send(self, item: pb.PlayRequestItem) -> None:
        self._stream.send(wire.in_request(item.SerializeToString()))

    def _over(self, seat: Seat) -> None:
        """A round is over; the first seat that hears of it tells how long that took."""
        self._found.done["rounds"] += seat[1] == 0
        called_at = self._found.called_at.pop((seat[0], self._prompts[seat]), None)
        if called_at is not None:
            self._found.decided_s.append(time.perf_counter() - called_at)

    def _rejected(self, rejected: pb.MoveRejected) -> None:
        if rejected.reason not in LATER:
            self._found.rejections.append(rejected.message)


class Load:
    """The bots, each with a connection of its own."""

    def __init__(self, args: argparse.Namespace, group: asyncio.TaskGroup) -> None:
        self._args, self._group = args, group
        self._found = Found()
        self._pace = Pace(rate=0)
        self._bots: list[Builder] = []

    @property
    def _matches(self) -> float:
        return sum(bot.seats for bot in self._bots) / SEATS

    async def start(self) -> None:
        """Waits until nearly all tables are full, and builds; ended matches are replaced."""
        for number in range(BOTS):
            options = [("grpc.use_local_subchannel_pool", 1)]
            await self._join(grpc.aio.insecure_channel(self._args.address, options=options), f"load-{number}")
        await wait_for_matches(lambda: self._matches, self._args.matches)
        self._pace.open()

    async def _join(self, channel: grpc.aio.Channel, name: str) -> None:
        metadata = (("authorization", f"Bearer {await self._register(channel, name)}"),)
        stream = Stream(channel.stream_stream("/seatwise.v1.PlayService/Play")(metadata=metadata))
        bot = Builder(stream, self._pace, self._found)
        self._bots.append(bot)
        self._group.create_task(stream.write_all())
        self._group.create_task(stream.read_all(bot.take))
        self._group.create_task(self._attend(channel, metadata, bot))

    async def _register(self, channel: grpc.aio.Channel, bot: str) -> str:
        stub: Any = bot_service_pb2_grpc.BotServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
        metadata = (("authorization", f"Bearer {self._args.admin}"),)
        answer = await stub.RegisterBot(bot_service_pb2.RegisterBotRequest(bot=bot), metadata=metadata)
        return str(answer.token)

    async def _attend(self, channel: grpc.aio.Channel, metadata: Any, bot: Builder) -> None:
        call: Any = channel.stream_stream(
            "/seatwise.v1.LobbyService/Attend",
            request_serializer=lobby_service_pb2.AttendRequest.SerializeToString,
            response_deserializer=lobby_service_pb2.AttendResponse.FromString,
        )(metadata=metadata)
        most = SPARE * self._args.matches * SEATS // BOTS
        await call.write(lobby_service_pb2.AttendRequest(queues=[QUEUE], max_matches=most))
        await Stream(call).read_all(bot.offered)

    async def measure(self) -> dict[str, Any]:
        """One window."""
        found, pids = self._found, [*self._args.pids, os.getpid()]
        found.decided_s.clear()
        began, before, done = time.perf_counter(), [cpu_s(pid) for pid in pids], Counter(found.done)
        all_before, in_play = cpu_of_all_s(), []
        while time.perf_counter() - began < self._args.seconds:
            in_play.append(self._matches)
            await asyncio.sleep(LOOK_S)
        seconds = time.perf_counter() - began
        spent = [cpu_s(pid) - cpu for pid, cpu in zip(pids, before, strict=True)]
        done = found.done - done
        cuts = quantiles(found.decided_s, n=100)
        return {
            "rate": done["rounds"] / seconds,
            "cpu_us": [1e6 * cpu / max(1, done["rounds"]) for cpu in spent],
            "other_cores": max(0.0, cpu_of_all_s() - all_before - sum(spent)) / seconds,
            "p50_ms": 1e3 * cuts[49],
            "p99_ms": 1e3 * cuts[98],
            "matches": sum(in_play) / len(in_play),
            "matches_ended": done["matches"],
            "rejections": found.rejections[:3],
        }


async def main(args: argparse.Namespace) -> None:
    """Plays, measures, tells."""
    async with asyncio.TaskGroup() as group:
        load = Load(args, group)
        await load.start()
        await asyncio.sleep(args.warm)
        gc.collect()
        gc.freeze()
        say(await load.measure())
        os._exit(0)  # the streams need not be closed in peace: the server is ended next


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--admin", required=True, help="the admin token")
    parser.add_argument("--matches", type=int, default=64, help="how many at once")
    parser.add_argument("--warm", type=float, default=0.5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--pids", type=int, nargs="*", default=[], help="whose CPU is read")
    asyncio.run(main(parser.parse_args()))
