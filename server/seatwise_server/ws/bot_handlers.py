"""Serves one socket of a bot: who it is, then its attendance or its play stream, then the end and one log line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_server.counts import COUNTS
from seatwise_server.kernel_round_trips import IS_MEASURED_HERE
from seatwise_server.lobby.attendance import FIRST_REQUEST_S, AttendanceStream, first_request_refusal
from seatwise_server.lobby.lobby import Lobby, check_limit
from seatwise_server.play.play_stream import PushedPlayStream
from seatwise_server.play.referee import Referee
from seatwise_server.refusal import Refusal
from seatwise_server.services.access import ATTEND_METHOD, PLAY_METHOD
from seatwise_server.services.authentication import Authenticator, Caller, read_bearer_token
from seatwise_server.services.call_log import CallLog
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.streams import reading_beside
from seatwise_server.ws.bot_socket import BotSocket, PlayInput, SocketMessage
from seatwise_server.ws.websocket_server import Upgrade

DOOR = "websocket"
"""As the log line of a stream has it."""

TOKEN_S = 2.0
"""How long a socket without the header Authorization may take to send its token."""
TOKEN_STALL_S = 1.0
"""A wait that is longer by this time, in seconds, was long because this process stood still."""


class SocketAuthentication:
    """Finds out whose a socket is."""

    def __init__(
        self, authenticator: Authenticator, admit_guest: Callable[[str], Awaitable[None]] | None = None
    ) -> None:
        """`admit_guest` is called with each token first: that of a guest is valid once the guest has a place."""
        self._authenticator = authenticator
        self._admit_guest = admit_guest

    async def authorize_socket(self, socket: BotSocket, upgrade: Upgrade, method: str, peer: str) -> Caller:
        """Return the bot that has opened the socket. Raises `Refusal`."""
        token = read_bearer_token(upgrade.authorization)
        if token is None:
            token = await self._receive_token(socket)
        if self._admit_guest and token:
            await self._admit_guest(token)
        try:
            return await self._authenticator.authorize(method, token, peer)
        except Refusal as refusal:
            socket.has_bad_token = refusal.code == "UNAUTHENTICATED"
            raise

    async def _receive_token(self, socket: BotSocket) -> str | None:
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        try:
            async with asyncio.timeout(TOKEN_S):
                message = await socket.receive()
        except TimeoutError:
            if loop.time() - asked_s > TOKEN_S + TOKEN_STALL_S:
                late = "the server stood still while it waited for your token; connect again"
                raise Refusal("STREAM_TIMEOUT", late) from None
            message = None
        return None if message is None else _read_token(message)


def _read_token(message: SocketMessage) -> str:
    """Read {"token": "..."}, which is a text frame under either subprotocol."""
    try:
        said = json.loads(message.payload) if message.is_text else None
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and said.keys() == {"token"} and isinstance(said["token"], str):
        return said["token"].strip().removeprefix("Bearer ")
    why = 'send the token in the header Authorization: Bearer <token>, or as the first message, a text frame {"token": "..."}'
    raise Refusal("TOKEN_MISSING", why)


class PlaySockets:
    """Serves play streams at a referee."""

    def __init__(
        self, referee: Referee, authentication: SocketAuthentication, open_streams: OpenStreams
    ) -> None:
        self._referee = referee
        self._authentication = authentication
        self._open_streams = open_streams

    async def serve_socket(self, socket: BotSocket, upgrade: Upgrade, peer: str) -> None:
        with _reporting_errors(PLAY_METHOD, socket):
            caller = await self._authentication.authorize_socket(socket, upgrade, PLAY_METHOD, peer)
            read_kernel = socket.round_trip_ms if IS_MEASURED_HERE else None
            stream = PushedPlayStream(
                caller.bot,
                lambda raw: socket.send(socket.format.encode_play_response(raw)),
                self._referee.lease.holds,
                self._referee.meters.meter_for(caller.bot, peer.rpartition(":")[0], read_kernel),
                socket.arrival,
            )
            with self._open_streams.track_stream(caller, stream), self._referee.streams.attach_stream(stream):
                socket.set_reader(PlayInput(socket, stream, self._referee.intake))
                refusal = await stream.wait_until_over()
            if refusal:
                raise refusal


class AttendSockets:
    """Serves attendances at a lobby."""

    def __init__(self, lobby: Lobby, authentication: SocketAuthentication, open_streams: OpenStreams) -> None:
        self._lobby = lobby
        self._authentication = authentication
        self._open_streams = open_streams

    async def serve_socket(self, socket: BotSocket, upgrade: Upgrade, peer: str) -> None:
        with _reporting_errors(ATTEND_METHOD, socket):
            caller = await self._authentication.authorize_socket(socket, upgrade, ATTEND_METHOD, peer)
            first = await _first_request(socket)
            if first is None:
                return
            queues = await self._lobby.known_queues(list(first.queues), is_guest=caller.is_guest)
            attendance = AttendanceStream(caller.bot, queues, check_limit(first.max_matches), socket.arrival)
            with self._open_streams.track_stream(caller, attendance):
                async with self._lobby.attend_lobby(attendance):
                    refusal = await self._attend(socket, attendance)
            if refusal:
                raise refusal

    async def _attend(self, socket: BotSocket, attendance: AttendanceStream) -> Refusal | None:
        """Reads and writes until the attendance ends; returns why it does."""

        async def write(response: pb.AttendResponse) -> None:
            await socket.wait_for_room()
            socket.send(socket.format.encode_attend_response(response))

        reading = self._read_requests(socket, attendance)
        with reading_beside(reading, lambda: attendance.end(None)) as reader:
            refusal = await attendance.write_all(write)
            if reader.done():
                await reader  # which may have met what it had to refuse
        return refusal

    async def _read_requests(self, socket: BotSocket, attendance: AttendanceStream) -> None:
        while (message := await socket.receive()) is not None:
            request = socket.format.read_attend_request(_payload(socket, message))
            await self._lobby.set_limit(attendance, request.max_matches)


async def _first_request(socket: BotSocket) -> pb.AttendRequest | None:
    """Return the first request; `None` if the peer hangs up instead."""
    try:
        async with asyncio.timeout(FIRST_REQUEST_S):
            message = await socket.receive()
    except TimeoutError:
        raise first_request_refusal() from None
    return None if message is None else socket.format.read_attend_request(_payload(socket, message))


def _payload(socket: BotSocket, message: SocketMessage) -> bytes:
    if message.is_text != socket.format.is_text:
        raise Refusal("MALFORMED", f"the subprotocol {socket.format.name} has other frames")
    return message.payload


@contextmanager
def _reporting_errors(method: str, socket: BotSocket) -> Iterator[None]:
    """Tell the bot of every error inside this block as a refusal, closes the socket, and write the stream's log line."""
    line = CallLog(method, DOOR)
    try:
        yield
        if socket.failure is not None:
            raise socket.failure
        if socket.was_closed_by_peer or not socket.is_closed:
            socket.close()
        else:
            line.code = "CANCELLED"
    except Exception as error:
        refusal = line.refusal_for(error)
        COUNTS.refusals[refusal.reason] += 1
        socket.refuse(refusal)
    except asyncio.CancelledError:
        line.code = "CANCELLED"
        raise
    finally:
        line.write_line()
