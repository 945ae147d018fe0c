"""A lobby and a referee that do what a check tells them, over gRPC on loopback. All that passes is in a transcript."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, Final

import grpc
from google.protobuf import any_pb2, text_format

from seatwise.v1 import error_pb2, lobby_service_pb2, play_service_pb2

EXAMINED: Final = "bots/examined/versions/1"
"""The name of the bot that is examined."""

LONGEST_SHOWN: Final = 400


class NothingCame(Exception):  # it is an outcome, which a check may expect
    """The bot has not done what was due, within the patience."""


class Transcript:
    """What was said between the server and the bot, with the times."""

    def __init__(self) -> None:
        self._started_s = monotonic()
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        """Add a line."""
        shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
        self.lines.append(f"{monotonic() - self._started_s:7.3f} s  {shown}")

    def note_message(self, arrow: str, message: Any) -> None:
        """Add a message: "<" came from the bot, ">" went to it."""
        shown = text_format.MessageToString(message, as_one_line=True, print_unknown_fields=False)
        self.note(f"{arrow} {type(message).__name__} {{{shown}}}")


class ScriptedStream:
    """The server's end of one stream of the bot."""

    def __init__(self, context: Any, transcript: Transcript) -> None:
        self._context = context
        self._transcript = transcript
        self._end: asyncio.Future[tuple[str, str, dict[str, str]] | None] = (
            asyncio.get_running_loop().create_future()
        )
        self._one_writer = asyncio.Lock()
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        """Requests to the lobby, or items to the referee, that no check has read yet."""
        self.metadata: dict[str, str] = {str(key): str(value) for key, value in context.invocation_metadata()}
        self.is_gone = asyncio.Event()

    async def serve(self, requests: Any) -> None:
        """Run until the check or the bot ends the stream."""
        self._transcript.note(f"the bot opens {type(self).__name__.removeprefix('Scripted')}")
        reader = asyncio.create_task(self._read(requests))
        try:
            end = await self._end
            async with self._one_writer:  # a message that is being written would break the end of the stream
                pass
        finally:
            reader.cancel()
            self.is_gone.set()
            self._transcript.note(f"{type(self).__name__.removeprefix('Scripted')} is closed")
        if end is not None:
            await _refuse(self._context, *end)

    def end(self, code: str = "", reason: str = "", **metadata: str) -> None:
        """End the stream: in peace, or with this gRPC code and reason."""
        self._transcript.note(
            f"the server ends the stream: {code or 'without an error'} {reason} {metadata or ''}"
        )
        if not self._end.done():
            self._end.set_result((code, reason, metadata) if code else None)

    async def read(self, patience_s: float) -> Any:
        """Return the next request or item. Raises `NothingCame`."""
        try:
            async with asyncio.timeout(patience_s):
                return await self.inbox.get()
        except TimeoutError:
            raise NothingCame(f"nothing came for {patience_s:g} s") from None

    async def send(self, message: Any) -> None:
        """Send a message to the bot; to nowhere if the bot has closed the stream."""
        self._transcript.note_message(">", message)
        async with self._one_writer:
            try:
                await self._context.write(message)
            except (asyncio.InvalidStateError, grpc.aio.BaseError, grpc.aio.AioRpcError):
                self._transcript.note("the bot has closed the stream")

    async def _read(self, requests: Any) -> None:
        async for request in requests:
            self._transcript.note_message("<", request)
            await self.take_request(request)
        if not self._end.done():
            self._end.set_result(None)

    async def take_request(self, request: Any) -> None:
        """Put the parts of a request into the inbox."""
        raise NotImplementedError


class ScriptedLobby(ScriptedStream):
    """The lobby's end of an Attend stream. It welcomes the bot by itself."""

    async def take_request(self, request: Any) -> None:
        """See `ScriptedStream`."""
        welcome = lobby_service_pb2.Welcome(bot=EXAMINED, max_matches=request.max_matches)
        await self.send(lobby_service_pb2.AttendResponse(welcome=welcome))
        self.inbox.put_nowait(request)


class ScriptedReferee(ScriptedStream):
    """The referee's end of a Play stream."""

    async def take_request(self, request: Any) -> None:
        """See `ScriptedStream`."""
        for item in request.items:
            self.inbox.put_nowait(item)


async def _refuse(context: Any, code: str, reason: str, metadata: dict[str, str]) -> None:
    """End an RPC as the real server does."""
    info = error_pb2.ErrorInfo(reason=reason, domain="seatwise", metadata=metadata)
    detail = any_pb2.Any(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString())
    number: Any = grpc.StatusCode[code].value[0]
    status = error_pb2.Status(code=number, message="as the doctor wants it", details=[detail])
    trailing = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(grpc.StatusCode[code], "as the doctor wants it", trailing_metadata=trailing)


class ScriptedServer:
    """Hands out each stream that the bot opens, in the order of opening."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self.address = ""
        """HOST:PORT on loopback."""
        self.lobbies: asyncio.Queue[ScriptedLobby] = asyncio.Queue()
        self.referees: asyncio.Queue[ScriptedReferee] = asyncio.Queue()

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """Return the handlers of both services."""
        lobby, play = lobby_service_pb2, play_service_pb2
        attend = grpc.stream_stream_rpc_method_handler(
            self._attend, lobby.AttendRequest.FromString, lobby.AttendResponse.SerializeToString
        )
        playing = grpc.stream_stream_rpc_method_handler(
            self._play, play.PlayRequest.FromString, play.PlayResponse.SerializeToString
        )
        return (
            grpc.method_handlers_generic_handler("seatwise.v1.LobbyService", {"Attend": attend}),
            grpc.method_handlers_generic_handler("seatwise.v1.PlayService", {"Play": playing}),
        )

    async def _attend(self, requests: Any, context: Any) -> None:
        stream = ScriptedLobby(context, self._transcript)
        self.lobbies.put_nowait(stream)
        await stream.serve(requests)

    async def _play(self, requests: Any, context: Any) -> None:
        stream = ScriptedReferee(context, self._transcript)
        self.referees.put_nowait(stream)
        await stream.serve(requests)


@asynccontextmanager
async def scripted_server(transcript: Transcript) -> AsyncIterator[ScriptedServer]:
    """Serve on a free port of loopback as long as the context lasts."""
    scripted = ScriptedServer(transcript)
    server = grpc.aio.server(options=[("grpc.http2.min_ping_interval_without_data_ms", 1000)])
    server.add_generic_rpc_handlers(scripted.handlers())
    port = server.add_insecure_port("127.0.0.1:0")
    scripted.address = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield scripted
    finally:
        await server.stop(None)
