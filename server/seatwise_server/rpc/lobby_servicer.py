"""LobbyService: one stream for each bot that attends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise.v1 import lobby_service_pb2_grpc
from seatwise_server.lobby.attendance import FIRST_REQUEST_S, AttendanceStream, first_request_refusal
from seatwise_server.lobby.lobby import Lobby, check_limit
from seatwise_server.refusal import bad_argument
from seatwise_server.rpc.error_interceptor import Context, authorize_call
from seatwise_server.services.access import ATTEND_METHOD
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.streams import note_arrival_of_stream, reading_beside


class LobbyServicer(lobby_service_pb2_grpc.LobbyServiceServicer):
    """See lobby_service.proto."""

    def __init__(self, lobby: Lobby, authenticator: Authenticator, open_streams: OpenStreams) -> None:
        self._lobby = lobby
        self._authenticator = authenticator
        self._open_streams = open_streams

    async def Attend(self, requests: AsyncIterator[pb.AttendRequest], context: Context) -> None:
        """Serve one stream, from its first request to its end."""
        arrival = note_arrival_of_stream()
        caller = await authorize_call(self._authenticator, ATTEND_METHOD, context)
        first = await _first_request(requests)
        queues = await self._lobby.known_queues(list(first.queues), is_guest=caller.is_guest)
        attendance = AttendanceStream(caller.bot, queues, check_limit(first.max_matches), arrival)
        with self._open_streams.track_stream(caller, attendance):
            async with self._lobby.attend_lobby(attendance):
                reading = self._read_requests(requests, attendance)
                with reading_beside(reading, lambda: attendance.end(None)) as reader:
                    refusal = await attendance.write_all(context.write)
                    if reader.done():
                        await reader  # raises the refusal of a later request
        if refusal:
            raise refusal

    async def _read_requests(
        self, requests: AsyncIterator[pb.AttendRequest], attendance: AttendanceStream
    ) -> None:
        async for request in requests:
            await self._lobby.set_limit(attendance, request.max_matches)


async def _first_request(requests: AsyncIterator[pb.AttendRequest]) -> pb.AttendRequest:
    try:
        async with asyncio.timeout(FIRST_REQUEST_S):
            return await anext(requests)
    except TimeoutError:
        raise first_request_refusal() from None
    except StopAsyncIteration:
        message = "send a first request that names queues and max_matches"
        raise bad_argument("max_matches", message) from None
