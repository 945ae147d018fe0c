"""The outer edge of every RPC: refusals become statuses, faults stay ours, and each call is one log line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

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


class Guard(grpc.aio.ServerInterceptor):
    """Wraps every handler."""

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """The same handler, guarded. Unknown methods are answered by gRPC itself."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith(QUIET):
            return handler
        handler = handler._replace(request_deserializer=_forgiving(handler.request_deserializer))
        if handler.unary_unary:
            return handler._replace(unary_unary=_guarded_call(method, handler.unary_unary))
        if handler.unary_stream:
            return handler._replace(unary_stream=_guarded_stream(method, handler.unary_stream))
        return handler._replace(stream_stream=_guarded_call(method, handler.stream_stream))


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


def _guarded_call(method: str, behaviour: Callable[[Any, Context], Awaitable[Any]]) -> Any:
    async def guarded(request: Any, context: Context) -> Any:
        line = _Line(method)
        try:
            check_readable(request)
            return await behaviour(request, context)
        except Exception as error:
            await errors.abort(context, line.refusal_for(error))
        except asyncio.CancelledError:
            line.code = "CANCELLED"
            raise
        finally:
            line.write()

    return guarded


def _guarded_stream(method: str, behaviour: Callable[[Any, Context], AsyncIterator[Any]]) -> Any:
    async def guarded(request: Any, context: Context) -> AsyncIterator[Any]:
        line = _Line(method)
        try:
            check_readable(request)
            async for response in behaviour(request, context):
                yield response
        except Exception as error:
            await errors.abort(context, line.refusal_for(error))
        except asyncio.CancelledError:
            line.code = "CANCELLED"
            raise
        finally:
            line.write()

    return guarded


def check_readable(request: Any) -> None:
    """`Refusal` MALFORMED for a request that could not be parsed; each request of a stream is checked too."""
    if isinstance(request, Unreadable):
        raise Refusal("MALFORMED", "these bytes are not the request that this method takes")


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
        log.info("rpc_ended", method=self.method, code=self.code, reason=self.reason, took_ms=took_ms)
