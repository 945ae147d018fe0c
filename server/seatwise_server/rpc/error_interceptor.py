"""The outermost layer of every RPC: errors become statuses without internal details, and each call is logged in one line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from inspect import isasyncgenfunction
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from seatwise_server.refusal import Refusal
from seatwise_server.rpc import refusal_status
from seatwise_server.rpc.call_context import Context
from seatwise_server.services.call_log import CallLog

_HANDLER_KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
"""The fields of a gRPC method handler, of which one is set."""

UNREADABLE = "these bytes are not the request that this method takes"

RequestCheck: TypeAlias = Callable[[Any], Any]


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every handler: a refusal becomes its status, any other error becomes INTERNAL, and each call is logged once."""

    def __init__(self, *, logs_calls: bool = True) -> None:
        self._logs_calls = logs_calls

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Returns the handler, wrapped. gRPC itself answers calls of unknown methods."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        kind = next(kind for kind in _HANDLER_KINDS if getattr(handler, kind))
        behaviour = getattr(handler, kind)
        wrap = _wrap_stream if isasyncgenfunction(behaviour) else _wrap_call
        wrapped = wrap(handler_call_details.method, behaviour, _request_check(handler), self._logs_calls)
        parse = _tolerant_parser(handler.request_deserializer)
        return handler._replace(request_deserializer=parse, **{kind: wrapped})


class UnreadableRequest:
    """Stands for a request that could not be parsed. Without it, gRPC would send the caller the name of an internal class."""


def _tolerant_parser(parse: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    if parse is None:
        return None

    def parsed(raw: bytes) -> Any:
        try:
            return parse(raw)
        except DecodeError:
            return UnreadableRequest()

    return parsed


def _wrap_call(
    method: str, behaviour: Callable[[Any, Context], Awaitable[Any]], check: RequestCheck, logs_calls: bool
) -> Any:
    async def wrapped(request: Any, context: Context) -> Any:
        async with _reporting_errors(method, context, logs_calls):
            return await behaviour(check(request), context)

    return wrapped


def _wrap_stream(
    method: str,
    behaviour: Callable[[Any, Context], AsyncIterator[Any]],
    check: RequestCheck,
    logs_calls: bool,
) -> Any:
    async def wrapped(request: Any, context: Context) -> AsyncIterator[Any]:
        async with _reporting_errors(method, context, logs_calls):
            async for response in behaviour(check(request), context):
                yield response

    return wrapped


@asynccontextmanager
async def _reporting_errors(method: str, context: Context, logs_calls: bool) -> AsyncIterator[None]:
    """Tells the caller of every error inside this block as a refusal, and writes the call's log line if `logs_calls`."""
    line = CallLog(method)
    try:
        yield
    except grpc.aio.InternalError:  # a response cannot be written because the caller has gone
        line.code = "CANCELLED"
        raise
    except Exception as error:
        await refusal_status.abort_call(context, line.refusal_for(error))
    except asyncio.CancelledError:
        line.code = "CANCELLED"
        raise
    finally:
        if logs_calls:
            line.write_line()


def _request_check(handler: Any) -> RequestCheck:
    """Returns the check of a request, or of a stream of requests, that runs before its handler.

    Play parses its bytes itself, so it needs no check.
    """
    if handler.request_deserializer is None:
        return lambda request: request
    return _check_each_request if handler.request_streaming else _check_request


def _check_request(request: Any) -> Any:
    """Returns the request. Raises `Refusal` MALFORMED if it could not be parsed."""
    if isinstance(request, UnreadableRequest):
        raise Refusal("MALFORMED", UNREADABLE)
    return request


async def _check_each_request(requests: AsyncIterable[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _check_request(request)
