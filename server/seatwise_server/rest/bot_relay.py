"""Bots over HTTP: passes what a bot reads and posts on to the lobby and to referees, over gRPC and with the bot's own token.

So the HTTP process may be any process. A bot stays at one URL: this side follows the addresses of its offers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response

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
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.http_call import DO_NOT_KEEP, authorize_request, read_body
from seatwise_server.rest.json_requests import RequestDecoder
from seatwise_server.rest.routes import NO_BODY, WHOLE_BODY, HttpRoute, UrlTree, find_method
from seatwise_server.services.access import ATTEND_METHOD, PLAY_METHOD
from seatwise_server.services.authentication import Authenticator, Caller, read_bearer_token
from seatwise_server.services.declarations import method_rules
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.streams import StreamArrival, note_arrival_of_stream

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


WireFactory: TypeAlias = Callable[[str], Wire]
"""Makes the wire of a bot to its lobby, from its token."""


def wires_to(http: HttpSettings) -> WireFactory:
    """Return the factory of wires to the lobby that the settings name. Raises `UsageError` for settings that cannot be."""
    tls_pin = http.lobby_pin or None
    security = Security.resolve_options(insecure=http.is_lobby_insecure or None, tls_pin=tls_pin)
    return lambda token: GrpcWire(http.lobby, token, security=security)


class BotRelays:
    """The state that this process keeps of bots over HTTP: the addresses of their referees, and their open play streams."""

    def __init__(self, new_wire: WireFactory, find_referee: FindReferee, open_streams: OpenStreams) -> None:
        """`open_streams` ends a play stream whose token is taken away."""
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
        """Yield what the lobby says, until it ends the stream. Raises `Refusal`, REPLACED if a stream that came later was quicker."""
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
        """Tell the lobby a new limit. Return False if no attendance is open with this token. Raises `Refusal`."""
        stream = self._attending.get(token)
        if stream is None:
            return False
        try:
            await stream.write(request)
        except SeatwiseError as error:
            raise refusal_of_relay(error) from error
        return True

    async def play(self, caller: Caller, arrival: StreamArrival) -> AsyncGenerator[PlayResponse, None]:
        """Yield what referees say, until the bot may not go on. Raises `Refusal`, REPLACED if a stream that came later was quicker.

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
            with self._open_streams.track_stream(caller, play):
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
        """Return the play stream that is open with this token."""
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
        """Send each item to the referee of its match, in order. The answers come on the stream."""
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
        """Take a message of a referee. It waits while the bot does not read."""
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
        """Tell the bot that it sits in these seats no more. The stream ends if the reason is the bot, and not the referee."""
        del self._streams[address]
        if why.reason in _ENDS_PLAY or why.code in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
            self.end(why)
        elif lost := [_not_seated(match, seat, why) for match, seat in seats]:
            await self.receive(address, PlayResponse(items=lost))

    def end(self, why: Refusal | None) -> None:
        """End the stream when the bot has read what came before."""
        self._unread.put_nowait(why or Refusal("RELAY_LOST", "the stream has ended; open it again"))

    async def next_message(self) -> PlayResponse:
        """Return the next message. Raises `Refusal` when the stream has ended."""
        message = await self._unread.get()
        if isinstance(message, Refusal):
            raise message
        self._room.release()
        return message

    async def close(self) -> None:
        """Close the streams to all referees."""
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
        """Send a message when the stream is open and the referee reads. Raises `Refusal` if too much waits for that."""
        self._unsent_bytes += request.ByteSize()
        if self._unsent_bytes > MOST_UNSENT_BYTES:
            self._unsent_bytes -= request.ByteSize()
            why = "the referee has not taken what you have sent; wait"
            raise Refusal("RATE_EXCEEDED", why, retry_after="1")
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
        """Pass messages on in both directions until the referee ends its stream. Raises `SeatwiseError` if it breaks."""
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
    """Return the refusal for an error of the lobby or of a referee: its own, if it gave one."""
    metadata = {name: text for name, text in error.metadata.items() if name not in ("reason", "message")}
    if error.reason in REASONS:
        return Refusal(error.reason, error.message, **metadata)
    return Refusal("RELAY_LOST", f"the gateway has lost its link: {error.message}; open the stream again")


# The URLs at which bots play over HTTP: two streams to read, and one URL to post to for each.

HTTP_ATTENDANCE_PATH = "/v1/attendance"
HTTP_PLAY_PATH = "/v1/play"
_SAMPLE_NONCE = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@dataclass(frozen=True, slots=True)
class BotRoute:
    """One of these URLs, with the texts that describe it."""

    route: HttpRoute
    operation_id: str
    summary: str
    description: str
    success: str
    """A sentence about the successful response."""
    example: dict[str, Any] = field(default_factory=dict)
    """The body of a request."""


def _route_of(operation: str, verb: str, path: str) -> HttpRoute:
    body, reasons = WHOLE_BODY if verb == "POST" else NO_BODY, method_rules()[operation].reasons
    return HttpRoute(find_method(operation), verb, path, body, "", "", path, reasons)


READ_ATTENDANCE = BotRoute(
    _route_of(ATTEND_METHOD, "GET", HTTP_ATTENDANCE_PATH),
    "attend",
    "A bot attends as long as it reads this stream",
    "The stream has one message on each line: first the welcome, then all open seats of the bot, then offers as they come. A "
    "newer stream of the same bot ends the older one with `REPLACED`.",
    "The stream of what the lobby says",
)
CHANGE_ATTENDANCE = BotRoute(
    _route_of(ATTEND_METHOD, "POST", HTTP_ATTENDANCE_PATH),
    "changeAttendance",
    "Changes the limit of matches of a bot that attends",
    "The stream of the bot must be open at this server. It has a new welcome when the limit applies.",
    "The lobby has the new limit",
    {"maxMatches": 4},
)
READ_PLAY = BotRoute(
    _route_of(PLAY_METHOD, "GET", HTTP_PLAY_PATH),
    "play",
    "The stream of what referees say to a bot",
    "The stream has one message on each line. The first is empty: items may be posted from then on. The server follows the "
    "addresses of offers, so this one stream has the messages of all referees.",
    "The stream of what referees say",
)
SEND_ITEMS = BotRoute(
    _route_of(PLAY_METHOD, "POST", HTTP_PLAY_PATH),
    "sendItems",
    "Sends items of a bot to the referees of its matches",
    "The stream of the bot must be open at this server: answers to items come there. Post one request after the other, so that "
    "items keep their order.",
    "The items are on their way",
    {"items": [{"match": "matches/kq3v8mzt2nwa", "seat": 1, "sit": {"nonce": _SAMPLE_NONCE}}]},
)
BOT_ROUTES = (READ_ATTENDANCE, CHANGE_ATTENDANCE, READ_PLAY, SEND_ITEMS)


# Serves the URLs of `bot_routes`: passes what bots read and post on to the relay.


def add_bot_endpoints(
    urls: UrlTree, relays: BotRelays, authenticator: Authenticator, streams: EventStreams
) -> None:
    """Add the URLs. `streams` counts the streams of bots, which need more of them than watchers."""
    endpoints = BotEndpoints(relays, authenticator, streams)
    answers = (
        (READ_ATTENDANCE, endpoints.answer_attendance),
        (CHANGE_ATTENDANCE, endpoints.change_attendance),
        (READ_PLAY, endpoints.answer_play),
        (SEND_ITEMS, endpoints.take_items),
    )
    for bot_route, endpoint in answers:
        path, verb = bot_route.route.path, bot_route.route.verb
        # A stream that opens replaces the bot's older one: a HEAD, which must change nothing, would end a bot that plays.
        urls.add_endpoint(path, verb, path, endpoint, answers_head=False)


class BotEndpoints:
    """Attend and Play for bots without gRPC."""

    def __init__(self, relays: BotRelays, authenticator: Authenticator, streams: EventStreams) -> None:
        self._relays, self._authenticator, self._streams = relays, authenticator, streams
        self._attendance = RequestDecoder(READ_ATTENDANCE.route)
        self._limit = RequestDecoder(CHANGE_ATTENDANCE.route)
        self._items = RequestDecoder(SEND_ITEMS.route)

    async def answer_attendance(self, request: Request, _values: list[str]) -> Response:
        """Attend as long as the caller reads. Queues and the most matches are in the query."""
        arrival = note_arrival_of_stream()
        caller = await authorize_request(self._authenticator, ATTEND_METHOD, request)
        asked = self._attendance.decode_request([], request.scope["query_string"], await read_body(request))
        items = self._relays.attend(caller, asked, arrival)  # type: ignore[arg-type]  # an AttendRequest
        return self._streams.response_of(request, items)

    async def change_attendance(self, request: Request, _values: list[str]) -> Response:
        """Take a new limit of matches. The lobby answers it on the stream, so that must be open here, with the same token."""
        token = read_bearer_token(request.headers.get("authorization")) or ""
        asked = self._limit.decode_request([], request.scope["query_string"], await read_body(request))
        if not await self._relays.change_attendance(token, asked):  # type: ignore[arg-type]  # an AttendRequest
            raise await self._no_stream(request, ATTEND_METHOD, HTTP_ATTENDANCE_PATH)
        return _accepted()

    async def answer_play(self, request: Request, _values: list[str]) -> Response:
        """Give what referees say, as long as the caller reads."""
        arrival = note_arrival_of_stream()
        caller = await authorize_request(self._authenticator, PLAY_METHOD, request)
        if request.scope["query_string"]:
            raise Refusal("INVALID_ARGUMENT", "this URL takes no query")
        return self._streams.response_of(request, self._relays.play(caller, arrival))

    async def take_items(self, request: Request, _values: list[str]) -> Response:
        """Take items of the bot. The answers come on the stream, so one must be open here, with the same token."""
        token = read_bearer_token(request.headers.get("authorization"))
        play = self._relays.open_play(token or "")
        if play is None:
            raise await self._no_stream(request, PLAY_METHOD, HTTP_PLAY_PATH)
        items = self._items.decode_request([], request.scope["query_string"], await read_body(request))
        await play.send_items(items.items)  # type: ignore[attr-defined]  # a PlayRequest
        return _accepted()

    async def _no_stream(self, request: Request, method: str, path: str) -> Refusal:
        """Authorize the caller first: one that has opened a stream was authorized then."""
        caller = await authorize_request(self._authenticator, method, request)
        why = f"no such stream of this bot is open at this server: open GET {path} first"
        return Refusal("NO_STREAM", why, bot=caller.bot)


def _accepted() -> Response:
    return Response(status_code=204, headers={"cache-control": DO_NOT_KEEP})
