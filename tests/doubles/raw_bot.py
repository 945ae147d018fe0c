"""A small client of the protocol without the SDK, which can have one fault: for the doctor to find."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any
from uuid import uuid4

import grpc
from google.protobuf.unknown_fields import UnknownFieldSet

from seatwise.errors import SeatwiseError
from seatwise.link.web_socket_wire import WebSocketWire
from seatwise.v1 import error_pb2
from seatwise.v1 import lobby_service_pb2 as lobby
from seatwise.v1 import play_service_pb2 as play
from seatwise_server.background_tasks import cancel_until_ended

SMALL = 65536
FINAL = {"REPLACED", "TOKEN_REVOKED", "TOKEN_UNKNOWN"}


class Seat:
    """What the client keeps of one seat."""

    def __init__(self, offer: lobby.SeatOffer, nonce: bytes) -> None:
        self.offer, self.nonce = offer, nonce
        self.receipt = b""
        self.prompt = -1
        self.move: play.SubmitMove | None = None
        self.is_open = False
        self.tries = 0


class RawBot:
    """Attends and plays. `fault` names the one thing that it does wrong."""

    def __init__(self, address: str, fault: str = "") -> None:
        self.address, self.fault = address, fault
        self.seats: dict[tuple[str, int], Seat] = {}
        self.limit = 4
        self.is_over = asyncio.Event()
        self.output = ""
        self._limit_changed = asyncio.Event()
        self._links: dict[str, asyncio.Task[None]] = {}
        self._writers: dict[str, Any] = {}
        self._nonce = secrets.token_bytes(32)
        self._attending: list[asyncio.Task[Any]] = []
        self._task = asyncio.create_task(self._run())

    # As the doctor sees it

    def read_output(self) -> str:
        return self.output

    def interrupt(self) -> None:
        if self.fault == "drains":
            self.is_over.set()
            return
        self.limit = 0
        self._limit_changed.set()
        if not self.seats:
            self.is_over.set()

    async def wait_for_end(self) -> str:
        await self.is_over.wait()
        return "with exit code 0"

    @property
    def memory_bytes(self) -> int:
        return 0

    def read_starved_s(self) -> float:
        return 0.0

    async def stop(self) -> None:
        """Ends all of its tasks. A call that is cancelled while it breaks may tell its task of the break, and not of the cancellation."""
        tasks = [self._task, *self._attending, *self._links.values()]
        await cancel_until_ended(tasks)
        await asyncio.gather(*tasks, return_exceptions=True)

    # The lobby

    async def _run(self) -> None:
        attending = asyncio.create_task(self._attend())
        over = asyncio.create_task(self.is_over.wait())
        self._attending = [attending, over]
        try:
            await asyncio.wait({attending, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (attending, over, *self._links.values()):
                task.cancel()
            self.is_over.set()

    async def _attend(self) -> None:
        failures = 0
        while True:
            started_s = monotonic()
            reason, retry_after = await self._attend_once()
            if self.fault == "stops_at_the_first_loss" or (reason in FINAL and self.fault != "ignores_final"):
                return
            failures = 0 if monotonic() - started_s > 5 else failures + 1
            bound_s = 0.0 if self.fault == "hammers" else min(5.0, 0.1 * 2 ** min(failures, 6))
            waits_s = 0.0 if self.fault == "ignores_retry_after" else retry_after
            await asyncio.sleep(waits_s + bound_s * secrets.randbelow(1000) / 1000)

    async def _attend_once(self) -> tuple[str, float]:
        token = "" if self.fault == "has_no_token" else "doctor"
        try:
            async with open_attend(self.address, token) as stream:
                writer = asyncio.create_task(self._write_limits(stream))
                try:
                    while (response := await stream.read()) is not None:
                        self._handle_lobby(response)
                finally:
                    writer.cancel()
        except StreamLost as lost:
            return lost.reason, lost.retry_after
        return "", 0.0

    async def _write_limits(self, call: Any) -> None:
        while True:
            await call.write(lobby.AttendRequest(queues=["casual"], max_matches=self.limit))
            await self._limit_changed.wait()
            self._limit_changed.clear()

    def _handle_lobby(self, response: lobby.AttendResponse) -> None:
        event = response.WhichOneof("event")
        if event is None and self.fault == "breaks_at_unknown_fields":
            self.is_over.set()
        if event == "taken_off" and self.fault == "breaks_at_unknown_enums":
            with suppress(KeyError, ValueError):
                lobby.TakenOff.Cause.Name(response.taken_off.cause)
                return
            self.is_over.set()
        if event == "closed":
            if self.fault == "ends_when_closed":
                self.is_over.set()
            self.seats.pop((response.closed.match, response.closed.seat), None)
        if event == "offer":
            self._handle_offer(response.offer)

    def _handle_offer(self, offer: lobby.SeatOffer) -> None:
        key = (offer.match, int(offer.seat))
        seat = self.seats.get(key)
        if seat is not None:
            is_newer = offer.epoch > seat.offer.epoch
            if not is_newer and self.fault != "follows_stale_offers":
                return
            if is_newer and self.fault == "ignores_epochs":
                return
            seat.offer, seat.is_open = offer, False
        else:
            nonce = self._nonce if self.fault == "has_one_nonce" else secrets.token_bytes(32)
            seat = self.seats[key] = Seat(offer, nonce)
        self._sit(seat)

    # The referees

    def _sit(self, seat: Seat) -> None:
        address = self._address_of(seat)
        if address not in self._links or self._links[address].done():
            self._links[address] = asyncio.create_task(self._keep_link(address))
        elif address in self._writers:
            self._send(seat, sit=play.Sit(nonce=seat.nonce, receipt=seat.receipt))

    async def _keep_link(self, address: str) -> None:
        while any(self._address_of(seat) == address for seat in self.seats.values()):
            await self._link_once(address)
            if self.fault == "never_comes_back":
                return
            await asyncio.sleep(0.05)

    async def _link_once(self, address: str) -> None:
        outbox: asyncio.Queue[play.PlayRequest] = asyncio.Queue()
        try:
            async with open_play(address, self.fault == "takes_small_messages") as stream:
                self._writers[address] = outbox
                writer = asyncio.create_task(self._write_items(stream, outbox))
                try:
                    for seat in list(self.seats.values()):
                        if self._address_of(seat) == address:
                            seat.is_open = False
                            self._send(seat, sit=play.Sit(nonce=seat.nonce, receipt=self._receipt_of(seat)))
                    while (response := await stream.read()) is not None:
                        updates = 0
                        for item in response.items:
                            updates += item.HasField("update")
                            if updates < 2 or self.fault != "reads_one_question":
                                self._handle_item(item, outbox)
                finally:
                    writer.cancel()
        except StreamLost:
            pass
        finally:
            self._writers.pop(address, None)

    def _address_of(self, seat: Seat) -> str:
        offered = seat.offer.ws_address if self.address.startswith("ws://") else seat.offer.address
        return offered or self.address

    def _receipt_of(self, seat: Seat) -> bytes:
        return b"" if self.fault == "forgets_receipts" else seat.receipt

    async def _write_items(self, call: Any, outbox: asyncio.Queue[play.PlayRequest]) -> None:
        with suppress(StreamLost):
            while True:
                await call.write(await outbox.get())

    def _send(self, seat: Seat, **action: Any) -> None:
        outbox = self._writers.get(self._address_of(seat))
        if outbox is not None:
            item = play.PlayRequestItem(match=seat.offer.match, seat=seat.offer.seat, **action)
            outbox.put_nowait(play.PlayRequest(items=[item]))

    def _handle_item(self, item: play.PlayResponseItem, outbox: asyncio.Queue[play.PlayRequest]) -> None:
        event = item.WhichOneof("event")
        if self.fault == "breaks_at_unknown_events" and len(UnknownFieldSet(item)):
            self.is_over.set()
        if event == "ping":
            if self.fault != "answers_no_pings":
                pong = play.PlayRequestItem(pong=play.Pong(number=item.ping.number))
                outbox.put_nowait(play.PlayRequest(items=[pong]))
            return
        seat = self.seats.get((item.match, int(item.seat)))
        if seat is None:
            return
        if 0 < item.epoch < seat.offer.epoch and self.fault != "answers_the_old_referee":
            return
        if event == "update":
            self._handle_update(seat, item.update)
        elif event == "move_accepted":
            seat.receipt = item.move_accepted.receipt or seat.receipt
            seat.is_open = False
        elif event == "move_rejected":
            self._handle_rejection(seat, item.move_rejected)
        elif event == "match_ended":
            self._handle_end(seat, item.match_ended)

    def _handle_update(self, seat: Seat, update: play.Update) -> None:
        seat.receipt = update.receipt or seat.receipt
        if not update.to_act:
            return
        is_new = self.fault == "answers_twice" and seat.is_open
        if update.prompt == seat.prompt and seat.move is not None and not is_new:
            if not seat.is_open and self.fault == "moves_again":
                seat.move.request_id = str(uuid4())
            seat.is_open = True
            self._send(seat, submit_move=seat.move)
            return
        seat.prompt, seat.tries, seat.is_open = update.prompt, 0, True
        seat.move = self._choose(update)
        self._send(seat, submit_move=seat.move)

    def _choose(self, update: play.Update) -> play.SubmitMove:
        move = play.SubmitMove(request_id=str(uuid4()), prompt=update.prompt)
        if update.pace == "arrange":
            move.ugo.arrange.cards.extend(update.ugo.won_cards)
        else:
            legal = update.ugo.hand if self.fault == "plays_any_card" else update.ugo.legal_cards
            move.ugo.play = max(legal)
        return move

    def _handle_rejection(self, seat: Seat, rejected: play.MoveRejected) -> None:
        if self.fault == "breaks_at_unknown_enums":
            try:
                play.MoveRejected.Reason.Name(rejected.reason)
            except ValueError:
                self.is_over.set()
        if self.fault == "ends_at_rejections" and rejected.reason == play.MoveRejected.REASON_NOT_ASKED:
            self.is_over.set()
        if rejected.reason != play.MoveRejected.REASON_ILLEGAL or seat.move is None:
            return
        seat.tries += 1
        if seat.tries < 3 or self.fault == "never_gives_up":
            seat.move.request_id = str(uuid4())
            self._send(seat, submit_move=seat.move)

    def _handle_end(self, seat: Seat, ended: play.MatchEnded) -> None:
        if ended.seed == bytes(32):
            self.output += "the seed does not fit the commitment\n"
            if self.fault == "breaks_at_a_wrong_seed":
                self.is_over.set()
        self.seats.pop((seat.offer.match, int(seat.offer.seat)), None)
        if not self.limit and not self.seats:
            self.is_over.set()


class StreamLost(Exception):
    """The server has ended a stream with an error, or it broke."""

    def __init__(self, reason: str = "", retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.reason, self.retry_after = reason, retry_after


class GrpcStream:
    """A stream over gRPC."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def write(self, message: Any) -> None:
        try:
            await self._call.write(message)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            raise StreamLost from None

    async def read(self) -> Any:
        """The next message; None at the end."""
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise StreamLost(*_reason_of(error)) from None
        return None if message is grpc.aio.EOF else message


class SocketStream:
    """A stream over WebSocket, which takes only small messages if it has that fault."""

    def __init__(self, stream: Any, takes_small: bool) -> None:
        self._stream, self._takes_small = stream, takes_small

    async def write(self, message: Any) -> None:
        try:
            await self._stream.write(message)
        except SeatwiseError:
            raise StreamLost from None

    async def read(self) -> Any:
        """The next message; None at the end."""
        try:
            message = await self._stream.read()
        except SeatwiseError as error:
            raise StreamLost(error.reason, float(error.metadata.get("retry_after", 0))) from None
        if self._takes_small and message is not None and message.ByteSize() > SMALL:
            raise StreamLost
        return message


@asynccontextmanager
async def open_attend(address: str, token: str) -> AsyncIterator[GrpcStream | SocketStream]:
    if address.startswith("ws://"):
        async with _lost_if_refused(), WebSocketWire(address, token).attend() as stream:
            yield SocketStream(stream, False)
        return
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.stream_stream(
            "/seatwise.v1.LobbyService/Attend",
            request_serializer=lobby.AttendRequest.SerializeToString,
            response_deserializer=lobby.AttendResponse.FromString,
        )
        yield GrpcStream(call(metadata=(("authorization", f"Bearer {token}"),) if token else ()))


@asynccontextmanager
async def open_play(address: str, takes_small: bool) -> AsyncIterator[GrpcStream | SocketStream]:
    if address.startswith("ws://"):
        async with _lost_if_refused(), WebSocketWire(address, "doctor").play(address) as stream:
            yield SocketStream(stream, takes_small)
        return
    options = [("grpc.max_receive_message_length", SMALL)] if takes_small else []
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        call = channel.stream_stream(
            "/seatwise.v1.PlayService/Play",
            request_serializer=play.PlayRequest.SerializeToString,
            response_deserializer=play.PlayResponse.FromString,
        )
        yield GrpcStream(call(metadata=(("authorization", "Bearer doctor"),)))


@asynccontextmanager
async def _lost_if_refused() -> AsyncIterator[None]:
    try:
        yield
    except SeatwiseError as error:
        raise StreamLost(error.reason) from None


def _reason_of(error: grpc.aio.AioRpcError) -> tuple[str, float]:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            detail, *_ = error_pb2.Status.FromString(bytes(value)).details
            info = error_pb2.ErrorInfo.FromString(detail.value)
            return info.reason, float(info.metadata.get("retry_after", 0))
    return "", 0.0


@asynccontextmanager
async def raw_bot(address: str, fault: str = "") -> AsyncIterator[RawBot]:
    """A client that plays at this address as long as the context lasts."""
    bot = RawBot(address, fault)
    try:
        yield bot
    finally:
        await bot.stop()
