"""The outer edge of every RPC: refusals become statuses, faults stay ours, and each call is one log line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from inspect import isasyncgenfunction
from typing import Any, TypeAlias

import grpc
import structlog
from google.protobuf.message import DecodeError

from seatwise_server.refusal import Refusal
from seatwise_server.rpc import errors
from seatwise_server.rpc.keeper import Context
from seatwise_server.store.errors import StoreUnavailable

log = structlog.get_logger()
QUIET = ("/grpc.health.", "/grpc.reflection.")
"""Called often and by machines: no log line."""
KINDS = ("unary_unary", "unary_stream", "stream_stream")
"""Of the methods that there are."""
Check: TypeAlias = Callable[[Any], Any]


class Guard(grpc.aio.ServerInterceptor):
    """Wraps every handler."""

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """The same handler, guarded. Unknown methods are answered by gRPC itself."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        kind = next(kind for kind in KINDS if getattr(handler, kind))
        behaviour = getattr(handler, kind)
        guard = _guarded_stream if isasyncgenfunction(behaviour) else _guarded_call
        guarded = guard(handler_call_details.method, behaviour, _check_of(handler))
        parse = _forgiving(handler.request_deserializer)
        return handler._replace(request_deserializer=parse, **{kind: guarded})


class Unreadable:
    """Stands for a request that could not be parsed; gRPC itself would tell the caller a class name."""


def _forgiving(parse: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    if parse is None:
        return None

    def parsed(raw: bytes) -> Any:
        try:
            return parse(raw)
        except DecodeError:
            return Unreadable()

    return parsed


def _guarded_call(method: str, behaviour: Callable[[Any, Context], Awaitable[Any]], check: Check) -> Any:
    async def guarded(request: Any, context: Context) -> Any:
        async with _told(method, context):
            return await behaviour(check(request), context)

    return guarded


def _guarded_stream(
    method: str, behaviour: Callable[[Any, Context], AsyncIterator[Any]], check: Check
) -> Any:
    async def guarded(request: Any, context: Context) -> AsyncIterator[Any]:
        async with _told(method, context):
            async for response in behaviour(check(request), context):
                yield response

    return guarded


@asynccontextmanager
async def _told(method: str, context: Context) -> AsyncIterator[None]:
    """Whatever goes wrong inside is told the caller as a refusal, and the log in one line."""
    line = _Line(method)
    try:
        yield
    except Exception as error:
        await errors.abort(context, line.refusal_for(error))
    except asyncio.CancelledError:
        line.code = "CANCELLED"
        raise
    finally:
        line.write()


def _check_of(handler: Any) -> Check:
    """What stands between a request, or a stream of them, and its handler. Play reads its bytes by itself."""
    if handler.request_deserializer is None:
        return lambda request: request
    return _all_readable if handler.request_streaming else _readable


def _readable(request: Any) -> Any:
    """`Refusal` MALFORMED for a request that could not be parsed."""
    if isinstance(request, Unreadable):
        raise Refusal("MALFORMED", "these bytes are not the request that this method takes")
    return request


async def _all_readable(requests: AsyncIterable[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _readable(request)


class _Line:
    """The one log line of a call."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.code = "OK"
        self.reason = ""
        self._began = time.monotonic()

    def refusal_for(self, error: Exception) -> Refusal:
        """What the caller is told. Only what we did not foresee is our fault, and only that is logged in full."""
        match error:
            case Refusal():
                refusal = error
            case StoreUnavailable():
                refusal = Refusal("STORE_UNAVAILABLE", "the store does not answer just now; try again")
            case grpc.aio.InternalError():  # what cannot be written: the caller has hung up
                self.code = "CANCELLED"
                raise error
            case _:
                log.exception("rpc_failed", method=self.method)
                refusal = Refusal("INTERNAL", "the fault is ours; it has been logged")
        self.code, self.reason = refusal.code, refusal.reason
        return refusal

    def write(self) -> None:
        took_ms = int((time.monotonic() - self._began) * 1000)
        if self.method.startswith(QUIET):
            return
        log.info("rpc_ended", method=self.method, code=self.code, reason=self.reason, took_ms=took_ms)
