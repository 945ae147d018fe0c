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
    forwarder: ReadForwarder | None = None,
    addresses: CallerAddresses | None = None,
) -> grpc.GenericRpcHandler:
    """Return the handler of one proto service, for `grpc.aio.Server.add_generic_rpc_handlers`.

    With a forwarder, calls of public methods without a token go through it. `addresses` knows the proxies.
    """
    callers = _Callers(authenticator, addresses or CallerAddresses())
    handlers = {
        it.method.rpartition("/")[2]: _forwarding_handler(it, callers, forwarder)
        if forwarder and it.access is Access.PUBLIC
        else _method_handler(it, callers)
        for it in operations
    }
    return grpc.method_handlers_generic_handler(service, handlers)


class _Callers:
    """Finds out who calls, and waits until it is the caller's turn."""

    def __init__(self, authenticator: Authenticator, addresses: CallerAddresses) -> None:
        self._authenticator = authenticator
        self._addresses = addresses

    async def admit_caller(self, operation: Operation, request: Any, context: Context) -> Caller:
        """Return the caller. Raises `Refusal` if it may not call the method, or not as often."""
        peer = self._addresses.peer_of(context)
        caller = await authorize_call(self._authenticator, operation.method, context, peer)
        await operation.admit(caller, request)
        return caller


def _method_handler(operation: Operation, callers: _Callers) -> grpc.RpcMethodHandler[Any, Any]:
    decode, encode = operation.request_type.FromString, operation.response_type.SerializeToString

    async def call(request: Any, context: Context) -> Any:
        caller = await callers.admit_caller(operation, request, context)
        return await operation.handle(caller, request)

    async def stream(request: Any, context: Context) -> AsyncIterator[Any]:
        caller = await callers.admit_caller(operation, request, context)
        async for response in operation.handle(caller, request):
            yield response

    if operation.is_streaming:
        return grpc.unary_stream_rpc_method_handler(stream, decode, encode)
    return grpc.unary_unary_rpc_method_handler(call, decode, encode)


def _forwarding_handler(
    operation: Operation, callers: _Callers, forwarder: ReadForwarder
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return a handler of raw bytes: a request is read here only for its cost, and is forwarded as it came."""

    async def call(raw: bytes, context: Context) -> bytes:
        request = _decode_request(operation, raw)
        caller = await callers.admit_caller(operation, request, context)

        async def answer_here() -> bytes:
            response = await operation.handle(caller, request)
            encoded: bytes = response.SerializeToString()
            return encoded

        if is_anonymous(context):
            return await forwarder.call_unary(operation.method, raw, context, answer_here)
        return await answer_here()

    async def stream(raw: bytes, context: Context) -> AsyncIterator[bytes]:
        request = _decode_request(operation, raw)
        caller = await callers.admit_caller(operation, request, context)

        async def answer_here() -> AsyncIterator[bytes]:
            async for response in operation.handle(caller, request):
                yield response.SerializeToString()

        answers: AsyncIterator[bytes]
        if is_anonymous(context):
            answers = forwarder.call_streaming(operation.method, raw, context, answer_here)
        else:
            answers = answer_here()
        async for response in answers:
            yield response

    if operation.is_streaming:
        return grpc.unary_stream_rpc_method_handler(stream)
    return grpc.unary_unary_rpc_method_handler(call)


def _decode_request(operation: Operation, raw: bytes) -> Any:
    try:
        return operation.request_type.FromString(raw)
    except DecodeError:
        raise Refusal("MALFORMED", UNREADABLE) from None
