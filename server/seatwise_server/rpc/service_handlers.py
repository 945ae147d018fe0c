"""Serves every operation of the services layer over gRPC: decode, authorize, call, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import grpc

from seatwise_server.rpc.call_context import Context, authorize_call
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.operations import Operation


def service_handler(
    service: str, operations: Iterable[Operation], authenticator: Authenticator
) -> grpc.GenericRpcHandler:
    """Returns the handler of one proto service, for `grpc.aio.Server.add_generic_rpc_handlers`."""
    handlers = {it.method.rpartition("/")[2]: _method_handler(it, authenticator) for it in operations}
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
