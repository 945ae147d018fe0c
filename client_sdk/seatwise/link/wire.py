"""The transport: channels, credentials and streams. Tests and simulations replace it with their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

import grpc
from google.protobuf.message import DecodeError

from seatwise.errors import BadTokenError, UnavailableError, from_rpc
from seatwise.link.dialing import explain_failure, open_channel
from seatwise.link.endpoint import Endpoint, refuse_clear_text, resolve_endpoint
from seatwise.link.security import Security
from seatwise.v1.lobby_service_pb2 import AttendRequest, AttendResponse, SeatOffer
from seatwise.v1.play_service_pb2 import PlayRequest, PlayResponse

Sent = TypeVar("Sent", contravariant=True)
Received = TypeVar("Received", covariant=True)


class WireStream(Protocol[Sent, Received]):
    """An open stream. Both methods raise a `SeatwiseError` when the stream is broken."""

    async def write(self, message: Sent) -> None:
        """Write a message, and return when the transport has taken it. Only one task may call this."""

    async def read(self) -> Received | None:
        """Return the next message; `None` when the server has closed the stream without an error."""


class Wire(Protocol):
    """The way from a bot to its server."""

    address: str
    """The address of the lobby."""

    def address_in(self, offer: SeatOffer) -> str:
        """Return the address of the referee that an offer names, by this transport; empty if it has none."""

    def attend(self) -> AbstractAsyncContextManager[WireStream[AttendRequest, AttendResponse]]:
        """Open a stream of LobbyService.Attend. It lasts as long as the context."""

    def play(self, address: str) -> AbstractAsyncContextManager[WireStream[PlayRequest, PlayResponse]]:
        """Open a stream of PlayService.Play at the referee with this address. It lasts as long as the context."""


def credentials_of(token: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata with the token. Raises `BadTokenError` if the text cannot be a token."""
    if not token.isascii() or not token.isprintable():
        raise BadTokenError("the token has characters that no token has; was it copied in full?")
    return (("authorization", f"Bearer {token}"),) if token else ()


NOT_A_MESSAGE: Final = object()
"""Given to gRPC in place of a message that cannot be read. From an exception it would log the traceback, and end the stream."""
NO_MESSAGE: Final = "the server has sent bytes that are no message"


def reader_of(response: Any) -> Callable[[bytes], Any]:
    """Return the function with which gRPC reads the messages of a server: it returns `NOT_A_MESSAGE` for any other bytes."""

    def read_message(data: bytes) -> Any:
        try:
            return response.FromString(data)
        except DecodeError:
            return NOT_A_MESSAGE

    return read_message


class GrpcWire:
    """The wire over gRPC. It sends the token in clear to another machine only if that is allowed."""

    def __init__(
        self, address: str, token: str, front_door: bool = False, security: Security | None = None
    ) -> None:
        self.address = address
        self._token = token.strip()
        self._metadata = credentials_of(self._token)
        self._front_door = front_door
        """Whether referees are reached through the lobby's address too. A proxy there routes streams by their metadata."""
        self._security = security or Security.resolve_options()
        self._lobby = self._resolve_address(address)
        self._heard: set[str] = set()
        """Addresses at which a server has answered before, so TLS is not the reason if a link fails there."""

    def address_in(self, offer: SeatOffer) -> str:
        return offer.address or self.address

    @asynccontextmanager
    async def attend(self) -> AsyncIterator[WireStream[AttendRequest, AttendResponse]]:
        path = "/seatwise.v1.LobbyService/Attend"
        async with self._open_stream(self._lobby, path, AttendRequest, AttendResponse) as stream:
            yield stream

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[GrpcStream[PlayRequest, PlayResponse]]:
        endpoint = self.endpoint_at(address)
        path = "/seatwise.v1.PlayService/Play"
        named = ("seatwise-referee", address)
        async with self._open_stream(endpoint, path, PlayRequest, PlayResponse, named) as stream:
            yield stream

    def endpoint_at(self, address: str) -> Endpoint:
        """Return where the referee with this address is reached."""
        is_lobby = self._front_door or address == self.address
        return self._lobby if is_lobby else self._resolve_address(address, self._lobby)

    def _resolve_address(self, address: str, lobby: Endpoint | None = None) -> Endpoint:
        insecure = self._security.insecure
        endpoint = resolve_endpoint(address, insecure=insecure, lobby=lobby)
        refuse_clear_text(endpoint, self._token, insecure=insecure)
        return endpoint

    @asynccontextmanager
    async def _open_stream(
        self, endpoint: Endpoint, path: str, request: Any, response: Any, *metadata: tuple[str, str]
    ) -> AsyncIterator[GrpcStream[Any, Any]]:
        async with await open_channel(endpoint, self._security) as channel:
            method = channel.stream_stream(
                path, request_serializer=request.SerializeToString, response_deserializer=reader_of(response)
            )
            stream: GrpcStream[Any, Any] = GrpcStream(method(metadata=(*self._metadata, *metadata)))
            try:
                yield stream
            except UnavailableError as error:
                if stream.has_heard or error.reason or endpoint.target in self._heard:
                    raise
                raise await asyncio.to_thread(explain_failure, endpoint, self._security, error) from error
            finally:
                if stream.has_heard:
                    self._heard.add(endpoint.target)


class GrpcStream(Generic[Sent, Received]):
    """A call of grpc.aio that raises `SeatwiseError`. The call is cancelled when its channel is closed."""

    def __init__(self, call: grpc.aio.StreamStreamCall[Any, Any]) -> None:
        self._call = call
        self.has_heard = False
        """Whether the server has sent anything."""

    async def write(self, message: Sent) -> None:
        try:
            await self._call.write(message)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from error
        except asyncio.InvalidStateError as error:
            raise UnavailableError("the stream is closed") from error

    async def read(self) -> Received | None:
        try:
            message: Any = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from error
        self.has_heard = True
        if message is NOT_A_MESSAGE:
            raise UnavailableError(NO_MESSAGE)
        return None if message is grpc.aio.EOF else message
