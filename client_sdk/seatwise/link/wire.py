"""The transport of the link: channels, credentials, streams, and no more. A simulation puts in its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any, Generic, Protocol, TypeVar

import grpc

from seatwise.errors import BadTokenError, UnavailableError, from_rpc
from seatwise.v1.lobby_service_pb2 import AttendRequest, AttendResponse
from seatwise.v1.play_service_pb2 import PlayRequest, PlayResponse

Sent = TypeVar("Sent", contravariant=True)
Received = TypeVar("Received", covariant=True)

OPTIONS: list[tuple[str, Any]] = [
    ("grpc.primary_user_agent", f"seatwise-python/{version('seatwise')}"),
    # A stopped machine breaks no connection: without the second ping limit it takes a minute to notice.
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.http2.ping_timeout_ms", 2_000),
    ("grpc.http2.max_pings_without_data", 0),
    # The waits are ours (backoff.py); those of gRPC grow to two minutes, and a bot's clock runs.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]


class Stream(Protocol[Sent, Received]):
    """An open stream. Both methods raise a `SeatwiseError` when it is broken."""

    async def write(self, message: Sent) -> None:
        """Returns when the transport has taken the message. For one task only."""
        ...

    async def read(self) -> Received | None:
        """The next message; `None` when the server has closed the stream in peace."""
        ...


class Wire(Protocol):
    """How a bot reaches its server."""

    address: str
    """Of the lobby."""

    def attend(self) -> AbstractAsyncContextManager[Stream[AttendRequest, AttendResponse]]:
        """LobbyService.Attend, as long as the context lasts."""
        ...

    def play(self, address: str) -> AbstractAsyncContextManager[Stream[PlayRequest, PlayResponse]]:
        """PlayService.Play at that referee, as long as the context lasts."""
        ...


def open_channel(address: str) -> grpc.aio.Channel:
    """A channel to host:port, encrypted if the address begins with https://."""
    if address.startswith("https://"):
        credentials = grpc.ssl_channel_credentials()
        return grpc.aio.secure_channel(address.removeprefix("https://"), credentials, options=OPTIONS)
    return grpc.aio.insecure_channel(address.removeprefix("http://"), options=OPTIONS)


def credentials_of(token: str) -> tuple[tuple[str, str], ...]:
    """The metadata that says who we are."""
    if not token.isascii() or not token.isprintable():
        raise BadTokenError("the token has characters that no token has; was it copied in full?")
    return (("authorization", f"Bearer {token}"),) if token else ()


class GrpcWire:
    """The wire for bots that play over a network."""

    def __init__(self, address: str, token: str, front_door: bool = False) -> None:
        self.address = address
        self._metadata = credentials_of(token.strip())
        self._front_door = front_door
        """Referees are reached through the lobby's address too; a proxy routes by the metadata."""

    @asynccontextmanager
    async def attend(self) -> AsyncIterator[Stream[AttendRequest, AttendResponse]]:
        """As `Wire.attend`."""
        async with open_channel(self.address) as channel:
            method = channel.stream_stream(
                "/seatwise.v1.LobbyService/Attend",
                request_serializer=AttendRequest.SerializeToString,
                response_deserializer=AttendResponse.FromString,
            )
            yield GrpcStream(method(metadata=self._metadata))

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[Stream[PlayRequest, PlayResponse]]:
        """As `Wire.play`."""
        metadata = (*self._metadata, ("seatwise-referee", address))
        async with open_channel(self.address if self._front_door else address) as channel:
            method = channel.stream_stream(
                "/seatwise.v1.PlayService/Play",
                request_serializer=PlayRequest.SerializeToString,
                response_deserializer=PlayResponse.FromString,
            )
            yield GrpcStream(method(metadata=metadata))


class GrpcStream(Generic[Sent, Received]):
    """A call of grpc.aio whose failures are `SeatwiseError`s. Closing its channel cancels it."""

    def __init__(self, call: grpc.aio.StreamStreamCall[Any, Any]) -> None:
        self._call = call

    async def write(self, message: Sent) -> None:
        """As `Stream.write`."""
        try:
            await self._call.write(message)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from error
        except asyncio.InvalidStateError as error:
            raise UnavailableError("the stream is closed") from error

    async def read(self) -> Received | None:
        """As `Stream.read`."""
        try:
            message: Any = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from error
        return None if message is grpc.aio.EOF else message
