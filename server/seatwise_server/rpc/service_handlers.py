"""Serves every operation of the services layer over gRPC: decode, authorize, call, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from seatwise_server.refusal import Refusal
from seatwise_server.rpc.call_context import Context, authorize_call, is_anonymous
from seatwise_server.rpc.error_interceptor import UNREADABLE
from seatwise_server.rpc.read_forwarder import ReadForwarder
from seatwise_server.services.access import Access
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.operations import Operation


def service_handler(
    service: str,
    operations: Iterable[Operation],
    authenticator: Authenticator,
    forwarder: ReadForwarder | None = None,
) -> grpc.GenericRpcHandler:
    """Returns the handler of one proto service, for `grpc.aio.Server.add_generic_rpc_handlers`.

    With a forwarder, calls of public methods without a token go through it.
    """
    handlers = {
        it.method.rpartition("/")[2]: _forwarding_handler(it, authenticator, forwarder)
        if forwarder and it.access is Access.PUBLIC
        else _method_handler(it, authenticator)
        for it in operations
    }
    return grpc.method_handlers_generic_handler(service, handlers)


def _method_handler(operation: Operation, authenticator: Authenticator) -> grpc.RpcMethodHandler[Any, Any]:
    decode, encode = operation.request_type.FromString, operation.response_type.SerializeToString
    if operation.is_streaming:
        stream = _stream_behaviour(operation, authenticator)
        return grpc.unary_stream_rpc_method_handler(stream, decode, encode)
    return grpc.unary_unary_rpc_method_handler(_unary_behaviour(operation, authenticator), decode, encode)


def _unary_behaviour(
    operation: Operation, authenticator: Authenticator
) -> Callable[[Any, Context], Awaitable[Any]]:
    async def call_operation(request: Any, context: Context) -> Any:
        caller = await authorize_call(authenticator, operation.method, context)
        return await operation.handle(caller, request)

    return call_operation


def _stream_behaviour(
    operation: Operation, authenticator: Authenticator
) -> Callable[[Any, Context], AsyncIterator[Any]]:
    async def stream_operation(request: Any, context: Context) -> AsyncIterator[Any]:
        caller = await authorize_call(authenticator, operation.method, context)
        async for response in operation.handle(caller, request):
            yield response

    return stream_operation


def _forwarding_handler(
    operation: Operation, authenticator: Authenticator, forwarder: ReadForwarder
) -> grpc.RpcMethodHandler[Any, Any]:
    """Returns a handler of raw bytes: a request that is forwarded is not even parsed here."""
    if operation.is_streaming:
        return grpc.unary_stream_rpc_method_handler(_forwarded_stream(operation, authenticator, forwarder))
    return grpc.unary_unary_rpc_method_handler(_forwarded_call(operation, authenticator, forwarder))


def _forwarded_call(
    operation: Operation, authenticator: Authenticator, forwarder: ReadForwarder
) -> Callable[[bytes, Context], Awaitable[bytes]]:
    call_operation = _unary_behaviour(operation, authenticator)

    async def call(raw: bytes, context: Context) -> bytes:
        async def answer_here() -> bytes:
            response = await call_operation(_decode_request(operation, raw), context)
            encoded: bytes = response.SerializeToString()
            return encoded

        if is_anonymous(context):
            return await forwarder.call_unary(operation.method, raw, context, answer_here)
        return await answer_here()

    return call


def _forwarded_stream(
    operation: Operation, authenticator: Authenticator, forwarder: ReadForwarder
) -> Callable[[bytes, Context], AsyncIterator[bytes]]:
    stream_operation = _stream_behaviour(operation, authenticator)

    async def stream(raw: bytes, context: Context) -> AsyncIterator[bytes]:
        async def answer_here() -> AsyncIterator[bytes]:
            async for response in stream_operation(_decode_request(operation, raw), context):
                yield response.SerializeToString()

        is_forwarded = is_anonymous(context)
        answers = (
            forwarder.call_streaming(operation.method, raw, context, answer_here)
            if is_forwarded
            else answer_here()
        )
        async for response in answers:
            yield response

    return stream


def _decode_request(operation: Operation, raw: bytes) -> Any:
    try:
        return operation.request_type.FromString(raw)
    except DecodeError:
        raise Refusal("MALFORMED", UNREADABLE) from None
