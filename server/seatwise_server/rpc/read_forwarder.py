"""Forwards reads of callers without a token to another process, so that no number of readers slows matches down.

The bytes of requests and responses are passed on unchanged, and so are refusals. While there is no such process, a few reads
are answered here: a new server is asked once or twice only, and readers should not notice a restart of the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

from seatwise.errors import DETAILS_KEY
from seatwise_server.limits import FORWARDED_READS, FORWARDED_WATCHES, OWN_READS, OWN_WATCHES, Places
from seatwise_server.refusal import Refusal
from seatwise_server.rpc.error_interceptor import Context

CHANNEL_TO_READS: list[tuple[str, Any]] = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
]


class ReadForwarder:
    """Answers anonymous reads of a port: in the other process if it is connected, else here."""

    def __init__(self) -> None:
        self._wanted = asyncio.Event()
        self._channel: Any = None
        """The channel to the other process. Its calls take and return bytes, which the types of gRPC do not allow for."""
        self._forwarded = Places(FORWARDED_READS)
        self._forwarded_watches = Places(FORWARDED_WATCHES)
        self._own = Places(OWN_READS)
        self._own_watches = Places(OWN_WATCHES)

    async def wait_until_wanted(self) -> None:
        """Return when the first anonymous read has arrived."""
        await self._wanted.wait()

    def connect(self, socket: Path) -> None:
        """Begin to forward reads to the gRPC server at this UNIX socket."""
        self._channel = grpc.aio.insecure_channel(f"unix:{socket}", options=CHANNEL_TO_READS)

    async def disconnect(self) -> None:
        """Answer reads here from now on, and end those that the other process is answering."""
        channel, self._channel = self._channel, None
        if channel:
            await channel.close()

    async def call_unary(
        self, method: str, request: bytes, context: Context, answer_here: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """Return the response to one read. Raises `Refusal`."""
        self._wanted.set()
        if self._channel:
            with self._forwarded.reserve_place(), suppress(ReadProcessLost):  # a read may be repeated
                with _explaining_failures():
                    answer: bytes = await self._channel.unary_unary(method)(
                        request, timeout=context.time_remaining()
                    )
                return answer
        with self._own.reserve_place():
            return await answer_here()

    async def call_streaming(
        self, method: str, request: bytes, context: Context, answer_here: Callable[[], AsyncIterator[bytes]]
    ) -> AsyncIterator[bytes]:
        """Yield the responses of a stream.

        Raises `Refusal`. If the other process has ended, the refusal asks the caller to come back.
        """
        self._wanted.set()
        if self._channel is None:
            with self._own_watches.reserve_place():
                async for response in answer_here():
                    yield response
            return
        with self._forwarded_watches.reserve_place():
            call = self._channel.unary_stream(method)(request, timeout=context.time_remaining())
            try:
                with _explaining_failures():
                    async for response in call:
                        yield response
            finally:
                call.cancel()


class ReadProcessLost(Refusal):
    """The other process has ended, or could not be reached."""

    def __init__(self) -> None:
        super().__init__("SERVER_STOPPING", "the process that serves spectators has ended; come back")


@contextmanager
def _explaining_failures() -> Iterator[None]:
    """Raise the refusal of the other process, or an exception that says why there is none, for an error of gRPC in this block."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise _explain_failure(error) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ReadProcessLost from None  # a call of a closed channel raises the same error


def _explain_failure(error: grpc.aio.AioRpcError) -> BaseException:
    """Return the refusal that the other process sent, or an exception that says why it sent none."""
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY:
            return _decode_refusal(bytes(value) if not isinstance(value, str) else value.encode())
    if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return ReadProcessLost()
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return asyncio.CancelledError("the caller has waited long enough")
    return error


def _decode_refusal(details: bytes) -> Refusal:
    status, info = status_pb2.Status.FromString(details), error_details_pb2.ErrorInfo()
    status.details[0].Unpack(info)
    return Refusal(info.reason, status.message, **info.metadata)
