"""Takes the seats of a bot that does not play, and resigns them: the bot loses its matches, and no other bot waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from seatwise.errors import SeatwiseError
from seatwise.link.security import Security
from seatwise.link.wire import GrpcWire
from seatwise.v1.lobby_service_pb2 import AttendRequest, SeatOffer
from seatwise.v1.play_service_pb2 import PlayRequest, PlayRequestItem, PlayResponseItem, Resign, Sit

Write: TypeAlias = Callable[[PlayRequest], Awaitable[None]]

MAX_MATCHES = 1000
RECONNECT_S = 1.0
NONCE = bytes(32)
"""A nonce that adds no randomness to the deal."""


async def run_substitute(address: str, token: str, security: Security) -> None:
    """Take every seat that the bot is offered, and resign it. Runs until cancelled."""
    while True:
        try:
            async with asyncio.TaskGroup() as group:
                await _attend_lobby(GrpcWire(address, token, security=security), group)
                raise _LinkLost  # ends the streams to the referees too
        except* (SeatwiseError, _LinkLost):
            await asyncio.sleep(RECONNECT_S)


class _LinkLost(Exception):  # not an error: the substitute connects again
    pass


async def _attend_lobby(wire: GrpcWire, group: asyncio.TaskGroup) -> None:
    referees: dict[str, _SubstituteSeats] = {}
    async with wire.attend() as lobby:
        await lobby.write(AttendRequest(max_matches=MAX_MATCHES))
        while (response := await lobby.read()) is not None:
            if not response.HasField("offer"):
                continue
            address = response.offer.address or wire.address
            if address not in referees:
                referees[address] = _SubstituteSeats()
                group.create_task(referees[address].run_stream(wire, address))
            referees[address].take_seat(response.offer)


class _SubstituteSeats:
    """All seats at one referee. They share one stream, which has one writer."""

    def __init__(self) -> None:
        self._outbox: asyncio.Queue[PlayRequestItem] = asyncio.Queue()

    def take_seat(self, offer: SeatOffer) -> None:
        """Sit down, so that the seat can resign.

        A bot that never sits forfeits too, but only after the set-up time, and a match of two is then void.
        """
        self._outbox.put_nowait(PlayRequestItem(match=offer.match, seat=offer.seat, sit=Sit(nonce=NONCE)))

    async def run_stream(self, wire: GrpcWire, address: str) -> None:
        """Send what is queued, and resign a seat at its first update, which comes after the deal."""
        async with wire.play(address) as stream, asyncio.TaskGroup() as group:
            writer = group.create_task(self._write_requests(stream.write))
            while (response := await stream.read()) is not None:
                for item in response.items:
                    self._resign_when_dealt(item)
            writer.cancel()

    def _resign_when_dealt(self, item: PlayResponseItem) -> None:
        if item.HasField("update"):
            self._outbox.put_nowait(PlayRequestItem(match=item.match, seat=item.seat, resign=Resign()))

    async def _write_requests(self, write: Write) -> None:
        while True:
            await write(PlayRequest(items=[await self._outbox.get()]))
