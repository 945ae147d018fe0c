"""Serves every operation of the services layer over gRPC: decode, authorize, admit, call, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from seatwise_server.refusal import Refusal
from seatwise_server.rpc.error_interceptor import (
    UNREADABLE,
    CallerAddresses,
    Context,
    authorize_call,
    is_anonymous,
)
from seatwise_server.rpc.read_forwarder import ReadForwarder
from seatwise_server.services.access import Access
from seatwise_server.services.authentication import Authenticator, Caller
from seatwise_server.services.operations import Operation


def service_handler(
    service: str,
    operations: Iterable[Operation],
    authenticator: Authenticator,
    addresses: CallerAddresses,
    forwarder: ReadForwarder | None,
) -> grpc.GenericRpcHandler:
    """Return the handler of one proto service, for `grpc.aio.Server.add_generic_rpc_handlers`.

    With a forwarder, calls of public methods without a token go through it. `addresses` knows the proxies.
    """
    handlers = {
        it.method.rpartition("/")[2]: _OperationHandler(it, authenticator, addresses, forwarder).for_grpc()
        for it in operations
    }
    return grpc.method_handlers_generic_handler(service, handlers)


class _OperationHandler:
    """Serves one operation in raw bytes: a request that is forwarded is read here only for its cost, and goes on as it came."""

    def __init__(
        self,
        operation: Operation,
        authenticator: Authenticator,
        addresses: CallerAddresses,
        forwarder: ReadForwarder | None,
    ) -> None:
        self._operation = operation
        self._authenticator = authenticator
        self._addresses = addresses
        self._forwarder = forwarder if operation.access is Access.PUBLIC else None

    def for_grpc(self) -> grpc.RpcMethodHandler[bytes, bytes]:
        if self._operation.is_streaming:
            return grpc.unary_stream_rpc_method_handler(self._stream)
        return grpc.unary_unary_rpc_method_handler(self._call)

    async def _call(self, raw: bytes, context: Context) -> bytes:
        caller, request = await self._admit(raw, context)

        async def answer_here() -> bytes:
            response = await self._operation.handle(caller, request)
            encoded: bytes = response.SerializeToString()
            return encoded

        if self._forwarder and is_anonymous(context):
            return await self._forwarder.call_unary(self._operation.method, raw, context, answer_here)
        return await answer_here()

    async def _stream(self, raw: bytes, context: Context) -> AsyncIterator[bytes]:
        caller, request = await self._admit(raw, context)

        async def answer_here() -> AsyncIterator[bytes]:
            async for response in self._operation.handle(caller, request):
                yield response.SerializeToString()

        answers: AsyncIterator[bytes]
        if self._forwarder and is_anonymous(context):
            answers = self._forwarder.call_streaming(self._operation.method, raw, context, answer_here)
        else:
            answers = answer_here()
        async for response in answers:
            yield response

    async def _admit(self, raw: bytes, context: Context) -> tuple[Caller, Any]:
        """Return the caller and the request when it is the caller's turn. Raises `Refusal`."""
        try:
            request = self._operation.request_type.FromString(raw)
        except DecodeError:
            raise Refusal("MALFORMED", UNREADABLE) from None
        peer = self._addresses.peer_of(context)
        caller = await authorize_call(self._authenticator, self._operation.method, context, peer)
        await self._operation.admit(caller, request)
        return caller, request
