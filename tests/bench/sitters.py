"""Bots that attend, sit wherever they are offered a seat, answer pings, and note when they were asked; they never move."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import grpc

from seatwise.v1 import (
    bot_service_pb2,
    bot_service_pb2_grpc,
    lobby_service_pb2,
    match_service_pb2,
    match_service_pb2_grpc,
    time_control_pb2,
)
from seatwise.v1 import play_service_pb2 as pb

HOUR_MS = 3_600_000
PLAY = "/seatwise.v1.PlayService/Play"
OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
RETRY_S = 0.2
LOOK_S = 0.02


class Admin:
    """The operator, at a gateway."""

    def __init__(self, address: str, token: str) -> None:
        self._metadata = (("authorization", f"Bearer {token}"),)
        channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        self._bots: Any = bot_service_pb2_grpc.BotServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
        self._matches: Any = match_service_pb2_grpc.MatchServiceStub(channel)  # type: ignore[no-untyped-call]  # generated

    async def register(self, name: str) -> str:
        """A new bot's token."""
        request = bot_service_pb2.RegisterBotRequest(bot=name)
        return str((await self._bots.RegisterBot(request, metadata=self._metadata, timeout=60)).token)

    async def create(self, *names: str) -> str:
        """A match between these bots, who have an hour for each move."""
        request = match_service_pb2.CreateMatchRequest(
            game="games/ugo",
            bots=[f"bots/{name}/versions/1" for name in names],
            time_control=time_control_pb2.TimeControl(
                free_ms={"card": HOUR_MS, "arrange": HOUR_MS}, setup_ms=HOUR_MS
            ),
        )
        answer = await self._matches.CreateMatch(request, metadata=self._metadata, timeout=60)
        return str(answer.match.name)


class Sitter:
    """One bot."""

    def __init__(self, name: str, token: str, lobby: str) -> None:
        self.name = name
        self.asked: dict[str, tuple[int, float]] = {}
        """The matches in which it is to move: in which epoch, and since when."""
        self.epochs: dict[str, int] = {}
        self.addresses: dict[str, str] = {}
        """Where its matches are."""
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._lobby = lobby
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._outboxes: dict[str, asyncio.Queue[pb.PlayRequestItem]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Attends, and comes back whenever it is thrown out."""
        self._spawn(self._again(self._attend))

    async def stop(self) -> None:
        """Goes away."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*[channel.close() for channel in self._channels.values()])

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _again(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await work()
            await asyncio.sleep(RETRY_S)

    def _call(self, address: str, method: str, request: Any, response: Any) -> Any:
        if address not in self._channels:
            self._channels[address] = grpc.aio.insecure_channel(address, options=OPTIONS)
        call = self._channels[address].stream_stream(method, request.SerializeToString, response.FromString)
        return call(metadata=self._metadata, wait_for_ready=True)

    async def _attend(self) -> None:
        request, response = lobby_service_pb2.AttendRequest, lobby_service_pb2.AttendResponse
        call = self._call(self._lobby, "/seatwise.v1.LobbyService/Attend", request, response)
        await call.write(request(max_matches=1000))
        async for said in call:
            if said.HasField("offer"):
                self._offered(said.offer)

    def _offered(self, offer: lobby_service_pb2.SeatOffer) -> None:
        address = offer.address or self._lobby
        self.epochs[offer.match], self.addresses[offer.match] = offer.epoch, address
        if address not in self._outboxes:
            self._outboxes[address] = asyncio.Queue()
            self._spawn(self._again(lambda: self._play(address)))
        self._outboxes[address].put_nowait(_sit(offer.match, offer.seat))

    async def _play(self, address: str) -> None:
        call = self._call(address, PLAY, pb.PlayRequest, pb.PlayResponse)
        writing = self._spawn(self._write(call, self._outboxes[address]))
        try:
            async for said in call:
                for it in said.items:
                    self._take(address, it)
        finally:
            writing.cancel()

    async def _write(self, call: Any, outbox: asyncio.Queue[pb.PlayRequestItem]) -> None:
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            while True:
                items = [await outbox.get()]
                while not outbox.empty():
                    items.append(outbox.get_nowait())
                await call.write(pb.PlayRequest(items=items))

    def _take(self, address: str, it: pb.PlayResponseItem) -> None:
        if it.HasField("ping"):
            pong = pb.PlayRequestItem(pong=pb.Pong(number=it.ping.number))
            self._outboxes[address].put_nowait(pong)
        elif it.HasField("update") and it.update.to_act:
            self.asked[it.match] = (it.epoch, time.monotonic())


def _sit(match: str, seat: int) -> pb.PlayRequestItem:
    return pb.PlayRequestItem(match=match, seat=seat, sit=pb.Sit(nonce=os.urandom(32)))


def asked_since(bots: Sequence[Sitter], epochs: Mapping[str, int]) -> dict[str, float]:
    """When the open prompt was asked again by an owner after these; of each match for which that is so."""
    found = (it for bot in bots for it in bot.asked.items())
    return {match: at for match, (epoch, at) in found if match in epochs and epoch > epochs[match]}


async def until(look: Callable[[], bool], within_s: float) -> float:
    """How long it took until this was so."""
    began = time.monotonic()
    async with asyncio.timeout(within_s):
        while not look():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(LOOK_S)
    return time.monotonic() - began
