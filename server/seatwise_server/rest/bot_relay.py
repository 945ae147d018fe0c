"""Bots over HTTP: passes what a bot reads and posts on to the lobby and to referees, over gRPC and with the bot's own token.

So the HTTP process may be any process. A bot stays at one URL: this side follows the addresses of its offers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import nullcontext
from typing import Protocol, TypeAlias

from cachetools import LRUCache

from seatwise.errors import SeatwiseError
from seatwise.link.security import Security
from seatwise.link.wire import GrpcWire, Wire, WireStream
from seatwise.v1.lobby_service_pb2 import AttendRequest, AttendResponse
from seatwise.v1.play_service_pb2 import (
    MoveRejected,
    PlayRequest,
    PlayRequestItem,
    PlayResponse,
    PlayResponseItem,
)
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.config import HttpSettings
from seatwise_server.refusal import REASONS, Refusal
from seatwise_server.services.authentication import Caller
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.stream_arrival import StreamArrival

MOST_PINGS = 1_000
"""Pings that a bot may leave without an answer before the oldest is forgotten."""
MOST_WIRES = 10_000
"""Bots whose wires are kept in memory."""
MOST_RELAYED = 64
"""Messages of referees that wait for a bot to read them. Then its referees wait too, and end the stream as SLOW_READER."""
MOST_UNSENT_BYTES = 2**20
"""Bytes of items that may wait until one referee of a bot takes them."""
MOST_RELAYED_SEATS = 4_000
"""Seats of a bot that are remembered at one referee, and matches with the addresses of their referees: as many seats as a bot
can have. A bot may name any number that it does not have, and plays any number in the course of time."""
_ENDS_PLAY = ("REPLACED", "SLOW_READER")
"""Reasons of a referee that end the whole stream of the bot, beside those that are about its token."""


FindReferee: TypeAlias = Callable[[], Awaitable[str]]
"""Finds the address of a referee; empty if none is known. Every referee can say of a match that it is over, or elsewhere."""


class WireFactory(Protocol):
    """Makes the wire of a bot to its lobby."""

    def __call__(self, token: str) -> Wire:
        """Returns the wire with this token."""
        ...


def wires_to(http: HttpSettings) -> WireFactory:
    """Returns the factory of wires to the lobby that the settings name. Raises `UsageError` for settings that cannot be."""
    security = Security.resolve_options(
        insecure=http.is_lobby_insecure or None, tls_pin=http.lobby_pin or None
    )
    return lambda token: GrpcWire(http.lobby, token, security=security)


class BotRelays:
    """The state that this process keeps of bots over HTTP: the addresses of their referees, and their open play streams."""

    def __init__(
        self, new_wire: WireFactory, find_referee: FindReferee, open_streams: OpenStreams | None = None
    ) -> None:
        """`open_streams` ends a play stream whose token is taken away; without it, only the bot's referees do."""
        self._open_streams = open_streams
        self._new_wire = new_wire
        self._find_referee = find_referee
        self._wires: LRUCache[str, Wire] = LRUCache(MOST_WIRES)
        """By token. A wire remembers which referees it has reached, so that it looks for no other reason when one dies."""
        self._referees: LRUCache[str, LRUCache[str, str]] = LRUCache(MOST_WIRES)
        """By bot: the address of the referee of each match in which it has a seat."""
        self._newest_attendance: LRUCache[str, StreamArrival] = LRUCache(MOST_WIRES)
        """By token: when the newest stream came."""
        self._newest_play: LRUCache[str, StreamArrival] = LRUCache(MOST_WIRES)
        self._open: dict[str, RelayedPlay] = {}
        """By token."""
        self._attending: dict[str, WireStream[AttendRequest, AttendResponse]] = {}
        """By token."""

    async def attend(
        self, caller: Caller, request: AttendRequest, arrival: StreamArrival
    ) -> AsyncGenerator[AttendResponse, None]:
        """Yields what the lobby says, until it ends the stream. Raises `Refusal`, REPLACED if a stream that came later was quicker."""
        _check_newest(self._newest_attendance, caller, arrival)
        wire, referees = self._wire_of(caller), self._referees_of(caller)
        stream: WireStream[AttendRequest, AttendResponse] | None = None
        try:
            async with wire.attend() as stream:
                await stream.write(request)
                self._attending[caller.token] = stream
                while (response := await stream.read()) is not None:
                    if response.HasField("offer"):
                        referees[response.offer.match] = wire.address_in(response.offer)
                    elif response.HasField("closed"):
                        referees.pop(response.closed.match, None)
                    yield response
        except SeatwiseError as error:
            raise refusal_of_relay(error) from error
        finally:
            if self._attending.get(caller.token) is stream:
                del self._attending[caller.token]

    async def change_attendance(self, token: str, request: AttendRequest) -> bool:
        """Tells the lobby a new limit. Returns False if no attendance is open with this token. Raises `Refusal`."""
        stream = self._attending.get(token)
        if stream is None:
            return False
        try:
            await stream.write(request)
        except SeatwiseError as error:
            raise refusal_of_relay(error) from error
        return True

    async def play(self, caller: Caller, arrival: StreamArrival) -> AsyncGenerator[PlayResponse, None]:
        """Yields what referees say, until the bot may not go on. Raises `Refusal`, REPLACED if a stream that came later was quicker.

        The first message is empty, and tells that items may be posted. A newer stream of the bot replaces the older one.
        """
        _check_newest(self._newest_play, caller, arrival)
        wire, referees = self._wire_of(caller), self._referees_of(caller)

        async def find_address(match: str) -> str:
            return referees.get(match) or await self._find_referee() or wire.address

        play = RelayedPlay(wire, find_address)
        older, self._open[caller.token] = self._open.get(caller.token), play
        try:
            if older:
                # Its streams must be gone before there are new ones: of two at a referee, the one that opens last replaces the other.
                older.end(Refusal("REPLACED", "a newer stream of this bot has taken over", bot=caller.bot))
                await older.close()
            with self._open_streams.track_stream(caller, play) if self._open_streams else nullcontext():
                yield PlayResponse()
                while True:
                    yield await play.next_message()
        finally:
            if self._open.get(caller.token) is play:
                del self._open[caller.token]
            await play.close()

    def _wire_of(self, caller: Caller) -> Wire:
        wire = self._wires.get(caller.token)
        if wire is None:
            wire = self._wires[caller.token] = self._new_wire(caller.token)
        return wire

    def _referees_of(self, caller: Caller) -> LRUCache[str, str]:
        return self._referees.setdefault(caller.bot, LRUCache(MOST_RELAYED_SEATS))

    def open_play(self, token: str) -> RelayedPlay | None:
        """Returns the play stream that is open with this token."""
        return self._open.get(token)


def _check_newest(newest: LRUCache[str, StreamArrival], caller: Caller, arrival: StreamArrival) -> None:
    """After a standstill many requests of a bot wait, and are not answered in their order. Only the last one has a reader."""
    if newest.get(caller.token, arrival) > arrival:
        raise Refusal("REPLACED", "a newer stream of this bot has taken over", bot=caller.bot)
    newest[caller.token] = arrival


class RelayedPlay:
    """One play stream over HTTP: a stream to each referee that the bot has said something to.

    A referee that is lost ends nothing but its own seats: the bot is told NOT_SEATED for each, and sits down there again.
    """

    def __init__(self, wire: Wire, find_address: Callable[[str], Awaitable[str]]) -> None:
        """`find_address` finds the address of the referee of a match, or of one that knows where the match is."""
        self._wire = wire
        self._find_address = find_address
        self._unread: asyncio.Queue[PlayResponse | Refusal] = asyncio.Queue()
        self._room = asyncio.Semaphore(MOST_RELAYED)
        self._streams: dict[str, RefereeStream] = {}
        self._pings: dict[int, tuple[str, int]] = {}
        """By the number that the bot is told: the referee, and its own number. Two referees may use the same number."""
        self._ping_number = 0

    async def send_items(self, items: Iterable[PlayRequestItem]) -> None:
        """Sends each item to the referee of its match, in order. The answers come on the stream."""
        by_referee: dict[str, PlayRequest] = {}
        for item in items:
            address = await self._address_for(item)
            if address is not None:
                by_referee.setdefault(address, PlayRequest()).items.append(item)
        for address, request in by_referee.items():
            self._stream_to(address).send(request)

    async def _address_for(self, item: PlayRequestItem) -> str | None:
        """None: the pong answers no ping, and concerns nobody."""
        if not item.HasField("pong"):
            return await self._find_address(item.match)
        address, number = self._pings.pop(item.pong.number, (None, 0))
        item.pong.number = number
        return address

    def _stream_to(self, address: str) -> RefereeStream:
        if address not in self._streams:
            self._streams[address] = RefereeStream(self, self._wire, address)
        return self._streams[address]

    async def receive(self, address: str, response: PlayResponse) -> None:
        """Takes a message of a referee. It waits while the bot does not read."""
        for item in response.items:
            if item.HasField("ping"):
                item.ping.number = self._new_ping(address, item.ping.number)
        await self._room.acquire()
        self._unread.put_nowait(response)

    def _new_ping(self, address: str, number: int) -> int:
        self._ping_number += 1
        self._pings[self._ping_number] = (address, number)
        if len(self._pings) > MOST_PINGS:
            del self._pings[next(iter(self._pings))]
        return self._ping_number

    async def lose_referee(self, address: str, seats: Iterable[tuple[str, int]], why: Refusal) -> None:
        """Tells the bot that it sits in these seats no more. The stream ends if the reason is the bot, and not the referee."""
        del self._streams[address]
        if why.reason in _ENDS_PLAY or why.code in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
            self.end(why)
        elif lost := [_not_seated(match, seat, why) for match, seat in seats]:
            await self.receive(address, PlayResponse(items=lost))

    def end(self, why: Refusal | None) -> None:
        """Ends the stream when the bot has read what came before."""
        self._unread.put_nowait(why or Refusal("RELAY_LOST", "the stream has ended; open it again"))

    async def next_message(self) -> PlayResponse:
        """Returns the next message. Raises `Refusal` when the stream has ended."""
        message = await self._unread.get()
        if isinstance(message, Refusal):
            raise message
        self._room.release()
        return message

    async def close(self) -> None:
        """Closes the streams to all referees."""
        await cancel_until_ended([stream.task for stream in self._streams.values()])


class RefereeStream:
    """A stream to one referee, which is open as long as its task runs."""

    def __init__(self, play: RelayedPlay, wire: Wire, address: str) -> None:
        self._play, self._wire, self._address = play, wire, address
        self._seats: LRUCache[tuple[str, int], None] = LRUCache(MOST_RELAYED_SEATS)
        """Those in which the bot has sat down here, or has tried to, and whose matches are not known to be over."""
        self._unsent: list[PlayRequestItem] = []
        self._unsent_bytes = 0
        self._due = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    def send(self, request: PlayRequest) -> None:
        """Sends a message when the stream is open and the referee reads. Raises `Refusal` if too much waits for that."""
        self._unsent_bytes += request.ByteSize()
        if self._unsent_bytes > MOST_UNSENT_BYTES:
            self._unsent_bytes -= request.ByteSize()
            raise Refusal(
                "RATE_EXCEEDED", "the referee has not taken what you have sent; wait", retry_after="1"
            )
        self._seats.update({(item.match, item.seat): None for item in request.items if item.HasField("sit")})
        self._unsent += request.items
        self._due.set()

    async def _run(self) -> None:
        try:
            why = await self._pass_on()
        except SeatwiseError as error:
            why = refusal_of_relay(error)
        await self._play.lose_referee(self._address, list(self._seats), why)

    async def _pass_on(self) -> Refusal:
        """Passes messages on in both directions until the referee ends its stream. Raises `SeatwiseError` if it breaks."""
        async with self._wire.play(self._address) as stream:
            writer = asyncio.create_task(self._write_all(stream))
            try:
                while (response := await stream.read()) is not None:
                    self._forget_ended(response)
                    await self._play.receive(self._address, response)
            finally:
                await cancel_until_ended([writer])
        return Refusal("RELAY_LOST", "the referee has closed its stream; open the stream again")

    def _forget_ended(self, response: PlayResponse) -> None:
        """Nobody sits down again in a match that is over: a lost link would name each match that the bot has played here."""
        for item in response.items:
            if item.HasField("match_ended"):
                self._seats.pop((item.match, item.seat), None)

    async def _write_all(self, stream: WireStream[PlayRequest, PlayResponse]) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            items, self._unsent, self._unsent_bytes = self._unsent, [], 0
            try:
                await stream.write(PlayRequest(items=items))
            except SeatwiseError:
                return  # the reader gets the same error, and raises it


def _not_seated(match: str, seat: int, why: Refusal) -> PlayResponseItem:
    message = f"the link to the referee is lost; sit down again ({why.message})"
    rejected = MoveRejected(reason=MoveRejected.REASON_NOT_SEATED, message=message)
    return PlayResponseItem(match=match, seat=seat, move_rejected=rejected)


def refusal_of_relay(error: SeatwiseError) -> Refusal:
    """Returns the refusal for an error of the lobby or of a referee: its own, if it gave one."""
    metadata = {name: text for name, text in error.metadata.items() if name not in ("reason", "message")}
    if error.reason in REASONS:
        return Refusal(error.reason, error.message, **metadata)
    return Refusal("RELAY_LOST", f"the gateway has lost its link: {error.message}; open the stream again")
