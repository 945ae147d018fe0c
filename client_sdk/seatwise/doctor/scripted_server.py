"""A lobby and a referee that do what a check tells them, over gRPC or WebSocket on loopback. A transcript has all that passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any, Final

import grpc
from google.protobuf import any_pb2, text_format

from seatwise.doctor.stream_link import Door, NothingCame, StreamLink, UnreadableMessage
from seatwise.errors import UsageError
from seatwise.v1 import error_pb2, lobby_service_pb2, play_service_pb2

EXAMINED: Final = "bots/examined/versions/1"
"""The name of the bot that is examined."""

LONGEST_SHOWN: Final = 400


class GrpcLink:
    """A stream over gRPC: a `StreamLink`."""

    def __init__(self, requests: AsyncIterator[Any], context: Any) -> None:
        self._requests = requests
        self._context = context
        self.metadata = {str(key): str(value) for key, value in context.invocation_metadata()}

    async def read_requests(self, kind: Any) -> AsyncIterator[Any]:  # noqa: ARG002  # gRPC has decoded them
        async for request in self._requests:
            yield request

    async def write(self, message: Any) -> None:
        with suppress(asyncio.InvalidStateError, grpc.aio.BaseError, grpc.aio.AioRpcError):
            await self._context.write(message)

    async def refuse(self, number: int, code: str, reason: str, metadata: dict[str, str]) -> None:
        info = error_pb2.ErrorInfo(reason=reason, domain="seatwise", metadata=metadata)
        url = "type.googleapis.com/google.rpc.ErrorInfo"
        detail = any_pb2.Any(type_url=url, value=info.SerializeToString())
        status = error_pb2.Status(code=number, message="as the doctor wants it", details=[detail])
        trailing = (("grpc-status-details-bin", status.SerializeToString()),)
        await self._context.abort(grpc.StatusCode[code], "as the doctor wants it", trailing_metadata=trailing)


class Transcript:
    """The messages between the server and the bot, with their times."""

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

    request_type: Any
    """The type of the messages of the bot."""

    def __init__(self, link: StreamLink, transcript: Transcript) -> None:
        self._link = link
        self._transcript = transcript
        self._end: asyncio.Future[tuple[str, str, dict[str, str]] | None] = (
            asyncio.get_running_loop().create_future()
        )
        self._one_writer = asyncio.Lock()
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        """Requests to the lobby, or items to the referee, that no check has read yet."""
        self.is_gone = asyncio.Event()

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the stream. Over WebSocket the token may come in the first message."""
        return self._link.metadata

    async def serve(self) -> None:
        """Run until the check or the bot ends the stream."""
        self._transcript.note(f"the bot opens {type(self).__name__.removeprefix('Scripted')}")
        reader = asyncio.create_task(self._read_all())
        try:
            end = await self._end
            async with self._one_writer:  # a message that is being written would break the end of the stream
                pass
        finally:
            reader.cancel()
            self.is_gone.set()
            self._transcript.note(f"{type(self).__name__.removeprefix('Scripted')} is closed")
        if end is not None:
            code, reason, metadata = end
            number: Any = grpc.StatusCode[code].value[0]
            await self._link.refuse(number, code, reason, metadata)

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
                if patience_s <= 0:  # a bot may send without end
                    raise TimeoutError
                found = await self.inbox.get()
        except TimeoutError:
            raise NothingCame(f"nothing came for {patience_s:.3g} s") from None
        if isinstance(found, UnreadableMessage):
            raise found
        return found

    async def send(self, message: Any) -> None:
        """Send a message to the bot; to nowhere if the bot has closed the stream."""
        self._transcript.note_message(">", message)
        async with self._one_writer:
            await self._link.write(message)

    async def _read_all(self) -> None:
        try:
            async for request in self._link.read_requests(self.request_type):
                self._transcript.note_message("<", request)
                await self.take_request(request)
        except UnreadableMessage as error:
            self._transcript.note(str(error))
            self.inbox.put_nowait(error)
        if not self._end.done():
            self._end.set_result(None)

    async def take_request(self, request: Any) -> None:
        """Put the parts of a request into the inbox."""
        raise NotImplementedError


class ScriptedLobby(ScriptedStream):
    """The lobby's end of an Attend stream. It welcomes the bot by itself."""

    request_type = lobby_service_pb2.AttendRequest

    async def take_request(self, request: Any) -> None:
        welcome = lobby_service_pb2.Welcome(bot=EXAMINED, max_matches=request.max_matches)
        await self.send(lobby_service_pb2.AttendResponse(welcome=welcome))
        self.inbox.put_nowait(request)


class ScriptedReferee(ScriptedStream):
    """The referee's end of a Play stream."""

    request_type = play_service_pb2.PlayRequest

    async def take_request(self, request: Any) -> None:
        for item in request.items:
            self.inbox.put_nowait(item)


class ScriptedServer:
    """Hands out each stream that the bot opens, in the order of opening."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self.address = ""
        """HOST:PORT on loopback, with the scheme ws:// for the door of WebSockets."""
        self.lobbies: asyncio.Queue[ScriptedLobby] = asyncio.Queue()
        self.referees: asyncio.Queue[ScriptedReferee] = asyncio.Queue()

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """Return the handlers of both services."""
        lobby, play = lobby_service_pb2, play_service_pb2
        return (
            _handle_stream("Lobby", "Attend", self.serve_lobby, lobby.AttendRequest, lobby.AttendResponse),
            _handle_stream("Play", "Play", self.serve_referee, play.PlayRequest, play.PlayResponse),
        )

    async def serve_lobby(self, link: StreamLink) -> None:
        """Serve an Attend stream until its end."""
        stream = ScriptedLobby(link, self._transcript)
        self.lobbies.put_nowait(stream)
        await stream.serve()

    async def serve_referee(self, link: StreamLink) -> None:
        """Serve a Play stream until its end."""
        stream = ScriptedReferee(link, self._transcript)
        self.referees.put_nowait(stream)
        await stream.serve()


def _handle_stream(
    service: str, method: str, serve: Callable[[StreamLink], Awaitable[None]], request: Any, response: Any
) -> grpc.GenericRpcHandler:
    async def handle(requests: Any, context: Any) -> None:
        await serve(GrpcLink(requests, context))

    handler = grpc.stream_stream_rpc_method_handler(handle, request.FromString, response.SerializeToString)
    return grpc.method_handlers_generic_handler(f"seatwise.v1.{service}Service", {method: handler})


@asynccontextmanager
async def scripted_server(transcript: Transcript, door: Door = Door.GRPC) -> AsyncIterator[ScriptedServer]:
    """Serve on a free port of loopback as long as the context lasts. Raises `UsageError` where WebSockets are not installed."""
    scripted = ScriptedServer(transcript)
    open_port = (
        _open_grpc_port(scripted) if door is Door.GRPC else _open_web_socket_port(scripted, transcript)
    )
    async with open_port:
        yield scripted


@asynccontextmanager
async def _open_grpc_port(scripted: ScriptedServer) -> AsyncIterator[None]:
    server = grpc.aio.server(options=[("grpc.http2.min_ping_interval_without_data_ms", 1000)])
    server.add_generic_rpc_handlers(scripted.handlers())
    port = server.add_insecure_port("127.0.0.1:0")
    scripted.address = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


@asynccontextmanager
async def _open_web_socket_port(scripted: ScriptedServer, transcript: Transcript) -> AsyncIterator[None]:
    try:
        from seatwise.doctor.scripted_socket import open_sockets
    except ModuleNotFoundError as error:
        raise UsageError(
            "--door websocket needs the extra ws: pip install '.[ws]' in a clone of the repository"
        ) from error
    servers = {"/v1/attend": scripted.serve_lobby, "/v1/play": scripted.serve_referee}
    async with open_sockets(servers, transcript.note) as port:
        scripted.address = f"ws://127.0.0.1:{port}"
        yield
