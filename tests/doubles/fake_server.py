"""A lobby and a referee that say what a test tells them to, over a real grpc.aio server on loopback."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from typing import Any

import grpc
from google.protobuf import any_pb2
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.v1 import error_pb2, match_pb2, time_control_pb2
from seatwise.v1 import lobby_service_pb2 as lobby
from seatwise.v1 import play_service_pb2 as play

PATIENCE_S = 5.0
SEED = bytes(range(32))
OTHER = "bots/other/versions/1"
ME = "bots/me/versions/1"


def view_of_ugo(seat: int = 0, **fields: Any) -> ugo_pb2.View:
    """A view of a table with two seats."""
    size = len(fields.get("hand", ()))
    kingdom = ugo_pb2.Kingdom(sections=[ugo_pb2.Section() for _ in range(5)])
    common: dict[str, Any] = {
        "round": 1,
        "rounds": 4,
        "hand_sizes": [size, size],
        "kingdoms": [kingdom, kingdom],
    }
    return ugo_pb2.View(seat=seat, **{**common, **fields})


class FakeStream:
    """The server's end of one stream."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._end: asyncio.Future[tuple[str, str] | None] = asyncio.get_running_loop().create_future()
        self._one_writer = asyncio.Lock()
        self.metadata = dict(context.invocation_metadata())
        self.is_gone = asyncio.Event()

    async def serve(self, requests: Any) -> None:
        """Runs until the test, or the bot, ends the stream."""
        reader = asyncio.create_task(self._read(requests))
        try:
            end = await self._end
        finally:
            reader.cancel()
            self.is_gone.set()
        if end is not None:
            await refuse(self._context, *end)

    def end(self, code: str = "", reason: str = "") -> None:
        """Ends the stream: in peace, or with that code and reason."""
        self._end.set_result((code, reason) if code else None)

    async def next(self) -> Any:
        """What the bot says next: a request to the lobby, or an item to the referee."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._inbox.get()

    @property
    def heard(self) -> int:
        """What the bot has said and nobody has asked for yet."""
        return self._inbox.qsize()

    async def send(self, message: Any) -> None:
        """Says it to the bot."""
        async with self._one_writer:
            await self._context.write(message)

    async def _read(self, requests: Any) -> None:
        async for request in requests:
            for each in await self._taken(request):
                self._inbox.put_nowait(each)

    async def _taken(self, request: Any) -> Any:
        """The parts of a request."""
        return [request]


async def refuse(context: Any, code: str, reason: str) -> None:
    """Ends an RPC as the real server does."""
    info = error_pb2.ErrorInfo(reason=reason, domain="seatwise")
    detail = any_pb2.Any(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString())
    status = error_pb2.Status(code=1, message="so it is", details=[detail]).SerializeToString()
    trailing = (("grpc-status-details-bin", status),)
    await context.abort(grpc.StatusCode[code], "so it is", trailing_metadata=trailing)


class Lobby(FakeStream):
    """The lobby's end of an Attend stream."""

    pending_seats = 0
    """What the next welcomes say."""
    can_confirm = True
    """Whether it confirms limits, which it cannot while its store is away."""

    async def _taken(self, request: Any) -> Any:
        if self.can_confirm:
            await self.welcome(request.max_matches)
        return [request]

    async def welcome(self, max_matches: int) -> None:
        """Confirms the limit."""
        welcome = lobby.Welcome(bot=ME, max_matches=max_matches, pending_seats=self.pending_seats)
        await self.send(lobby.AttendResponse(welcome=welcome))

    async def limit(self) -> int:
        """The limit that the bot sets next."""
        request: lobby.AttendRequest = await self.next()
        return request.max_matches

    async def offer(
        self, match: str = "m", seat: int = 0, epoch: int = 1, max_rejections: int = 10, **others: Any
    ) -> None:
        """Offers a seat."""
        bots = [OTHER, OTHER]
        bots[seat] = ME
        limits = time_control_pb2.TimeControl(
            free_ms={"card": 1000, "arrange": 1000}, max_strikes=3, max_rejections=max_rejections
        )
        fields: dict[str, Any] = {
            "match": f"matches/{match}",
            "seat": seat,
            "epoch": epoch,
            "bots": bots,
            "time_control": limits,
            "game": "games/ugo",
            "commitment": sha256(SEED).digest(),
        }
        await self.offer_fields(**{**fields, **others})

    async def offer_fields(self, **fields: Any) -> None:
        """Offers a seat in a message of these fields."""
        await self.send(lobby.AttendResponse(offer=lobby.SeatOffer(**fields)))

    async def close(self, match: str = "m", seat: int = 0) -> None:
        """The seat is the bot's no longer."""
        closed = lobby.SeatClosed(match=f"matches/{match}", seat=seat)
        await self.send(lobby.AttendResponse(closed=closed))

    async def take_off(self, queue: str, reason: str, cause: str = "UNSPECIFIED") -> None:
        """The bot is off a ladder or a queue."""
        number = lobby.TakenOff.Cause.Value(f"CAUSE_{cause}")
        taken_off = lobby.TakenOff(queue=queue, reason=reason, cause=number)
        await self.send(lobby.AttendResponse(taken_off=taken_off))

    async def place(self, queue: str, place: int) -> None:
        """The bot waits there."""
        await self.send(lobby.AttendResponse(queued=lobby.Queued(queue=queue, place=place)))


class Referee(FakeStream):
    """The referee's end of a Play stream."""

    async def _taken(self, request: Any) -> Any:
        return request.items

    async def sat(self) -> play.PlayRequestItem:
        """The bot sits down."""
        item = await self.next()
        assert item.HasField("sit"), item
        return item  # type: ignore[no-any-return]

    async def moved(self) -> play.PlayRequestItem:
        """The bot moves."""
        item = await self.next()
        assert item.HasField("submit_move"), item
        return item  # type: ignore[no-any-return]

    async def say(self, match: str = "m", seat: int = 0, epoch: int = 1, **event: Any) -> None:
        """One item."""
        item = play.PlayResponseItem(match=f"matches/{match}", seat=seat, epoch=epoch, **event)
        await self.send(play.PlayResponse(items=[item]))

    async def show(self, prompt: int = 0, receipt: bytes = b"", **where: Any) -> None:
        """A view in which the seat is not asked."""
        view = view_of_ugo(where.get("seat", 0))
        await self.say(update=play.Update(prompt=prompt, receipt=receipt, ugo=view), **where)

    async def ask(self, prompt: int = 1, cards: tuple[int, ...] = (1, 2, 3), **where: Any) -> None:
        """A view in which the seat is asked for one of these cards."""
        view = view_of_ugo(where.get("seat", 0), hand=cards, legal_cards=cards)
        update = play.Update(
            prompt=prompt, to_act=True, pace="card", receipt=b"asked %d" % prompt, ugo=view,
            time=play.TimeLeft(move_ms=1000, bank_ms=502),
        )  # fmt: skip
        await self.say(update=update, **where)

    async def ask_to_build(
        self, hand: ubongo_pb2.View, prompt: int = 1, *, to_act: bool = True, **where: Any
    ) -> None:
        """A round of Ubongo with this hand."""
        update = play.Update(prompt=prompt, to_act=to_act, pace="build", ubongo=hand)
        await self.say(update=update, **where)

    async def accept(self, item: play.PlayRequestItem, receipt: bytes = b"", **where: Any) -> None:
        """The move stands."""
        request_id = item.submit_move.request_id
        await self.say(move_accepted=play.MoveAccepted(request_id=request_id, receipt=receipt), **where)

    async def reject(self, item: play.PlayRequestItem, reason: int | str, **where: Any) -> None:
        """The move does not stand."""
        number: Any = (
            play.MoveRejected.Reason.Value(f"REASON_{reason}") if isinstance(reason, str) else reason
        )
        rejected = play.MoveRejected(request_id=item.submit_move.request_id, reason=number, message="because")
        await self.say(move_rejected=rejected, **where)

    async def finish(self, points: tuple[int, int] = (7, 3), seed: bytes = SEED, **where: Any) -> None:
        """The match is over."""
        result = match_pb2.Result(
            points=points,
            outcome_ranks=[1, 2],
            ranks=[1, 2],
            endings=[match_pb2.ENDING_COMPLETED, match_pb2.ENDING_COMPLETED],
        )
        await self.say(match_ended=play.MatchEnded(result=result, seed=seed), **where)

    async def void(self, **where: Any) -> None:
        """The match counts for nobody."""
        await self.say(match_ended=play.MatchEnded(void_reason="ABORTED", seed=SEED), **where)


class Refused(Exception):  # it is what the server answers
    """To be answered instead of a response: a code and a reason."""


class Unary(grpc.GenericRpcHandler):  # type: ignore[misc]  # the stubs have it untyped
    """The unary services: answers by method, in the order given; the last one stays."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Any]] = {}
        self.heard: list[tuple[str, bytes, dict[str, Any]]] = []
        """Method, request and metadata of each call."""

    def service(self, handler_call_details: Any) -> Any:
        """The handler of a method."""
        method = handler_call_details.method.rpartition("/")[2]
        if method not in self.answers:
            return None
        if method == "WatchMatch":
            return grpc.unary_stream_rpc_method_handler(self._stream)
        return grpc.unary_unary_rpc_method_handler(self._answer_to(method))

    def _answer_to(self, method: str) -> Any:
        async def answer(request: bytes, context: Any) -> bytes:
            self.heard.append((method, request, dict(context.invocation_metadata())))
            answers = self.answers[method]
            return await self._told(answers.pop(0) if len(answers) > 1 else answers[0], context)

        return answer

    async def _stream(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        self.heard.append(("WatchMatch", request, dict(context.invocation_metadata())))
        for answer in self.answers["WatchMatch"].pop(0):
            yield await self._told(answer, context)

    async def _told(self, answer: Any, context: Any) -> bytes:
        if isinstance(answer, Refused):
            await refuse(context, *answer.args)
        return answer.SerializeToString()  # type: ignore[no-any-return]


class FakeServer:
    """Hands out each stream that a bot opens."""

    def __init__(self) -> None:
        self.address = ""
        self._lobbies: asyncio.Queue[Lobby] = asyncio.Queue()
        self._referees: asyncio.Queue[Referee] = asyncio.Queue()
        self.unary = Unary()

    async def lobby(self) -> Lobby:
        """The next Attend stream."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._lobbies.get()

    async def referee(self) -> Referee:
        """The next Play stream."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._referees.get()

    @property
    def has_news(self) -> bool:
        """Whether a stream was opened that nobody has asked for."""
        return not (self._lobbies.empty() and self._referees.empty())

    async def attend(self, requests: Any, context: Any) -> None:
        """LobbyService.Attend."""
        stream = Lobby(context)
        self._lobbies.put_nowait(stream)
        await stream.serve(requests)

    async def play(self, requests: Any, context: Any) -> None:
        """PlayService.Play."""
        stream = Referee(context)
        self._referees.put_nowait(stream)
        await stream.serve(requests)

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """Both services."""
        attend = grpc.stream_stream_rpc_method_handler(
            self.attend, lobby.AttendRequest.FromString, lobby.AttendResponse.SerializeToString
        )
        playing = grpc.stream_stream_rpc_method_handler(
            self.play, play.PlayRequest.FromString, play.PlayResponse.SerializeToString
        )
        return (
            grpc.method_handlers_generic_handler("seatwise.v1.LobbyService", {"Attend": attend}),
            grpc.method_handlers_generic_handler("seatwise.v1.PlayService", {"Play": playing}),
            self.unary,
        )


class SocketContext:
    """A WebSocket of the fake server, as the context of a gRPC call."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket
        assert socket.request is not None
        self._metadata = {name.lower(): value for name, value in socket.request.headers.raw_items()}

    def invocation_metadata(self) -> dict[str, str]:
        """The headers."""
        return self._metadata

    async def write(self, message: Any) -> None:
        """One message."""
        with suppress(ConnectionClosed):
            await self._socket.send(message.SerializeToString())

    async def abort(self, code: grpc.StatusCode, text: str, trailing_metadata: Any) -> None:
        """Says why it ends, and ends it."""
        [detail] = error_pb2.Status.FromString(trailing_metadata[0][1]).details
        info = error_pb2.ErrorInfo.FromString(detail.value)
        told = {"reason": info.reason, "domain": info.domain, "metadata": {}}
        error = {"code": 400, "status": code.name, "message": text, "details": [told]}
        await self._socket.send(json.dumps({"error": error}))
        await self._socket.close(4000 + code.value[0], info.reason)


@asynccontextmanager
async def serving_web_sockets(
    port: int = 0, context: ssl.SSLContext | None = None
) -> AsyncIterator[FakeServer]:
    """As `serving`, for bots that come by WebSocket."""
    fake = FakeServer()

    async def serve_socket(socket: ServerConnection) -> None:
        assert socket.request is not None
        is_lobby = socket.request.path == "/v1/attend"
        parse = lobby.AttendRequest.FromString if is_lobby else play.PlayRequest.FromString

        async def requests() -> AsyncIterator[Any]:
            with suppress(ConnectionClosed):
                async for raw in socket:
                    yield parse(raw)  # type: ignore[arg-type]

        handle = fake.attend if is_lobby else fake.play
        serving_it = asyncio.create_task(handle(requests(), SocketContext(socket)))
        gone = asyncio.create_task(socket.wait_closed())
        await asyncio.wait({serving_it, gone}, return_when=asyncio.FIRST_COMPLETED)
        for task in (serving_it, gone):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    where = ("127.0.0.1", port)
    async with serve(
        serve_socket, *where, ssl=context, subprotocols=["seatwise.v1.proto"], compression=None
    ) as server:  # type: ignore[list-item]
        taken = next(iter(server.sockets)).getsockname()[1]
        fake.address = f"{'wss' if context else 'ws'}://127.0.0.1:{taken}"
        yield fake
        for socket in list(server.connections):
            socket.transport.abort()


@asynccontextmanager
async def serving(
    port: int = 0, credentials: grpc.ServerCredentials | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[FakeServer]:
    """A server that is up as long as the context lasts; in plain text, or with these credentials."""
    fake = FakeServer()
    server = grpc.aio.server(options=[("grpc.http2.min_ping_interval_without_data_ms", 1000)])
    server.add_generic_rpc_handlers(fake.handlers())
    where = f"{host}:{port}"
    taken = server.add_secure_port(where, credentials) if credentials else server.add_insecure_port(where)
    fake.address = where if where.startswith("unix:") else f"{host}:{taken}"
    await server.start()
    try:
        yield fake
    finally:
        await server.stop(None)
