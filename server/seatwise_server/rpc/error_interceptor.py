"""The outermost layer of every RPC: errors become statuses without internal details, and each call is logged in one line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from inspect import isasyncgenfunction
from typing import Any, NoReturn, TypeAlias

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from seatwise.errors import DETAILS_KEY
from seatwise_server.counts import COUNTS
from seatwise_server.proxy_networks import ProxyNetworks
from seatwise_server.refusal import ERROR_DOMAIN, REFUSAL_DELIVERY_S, Refusal
from seatwise_server.services.authentication import Authenticator, Caller, read_bearer_token
from seatwise_server.services.call_log import CallLog
from seatwise_server.services.read_budget import address_of_peer
from seatwise_server.tracing import TRACING

# Reads the token and the peer of a call from its gRPC context.

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


async def authorize_call(
    authenticator: Authenticator, method: str, context: Context, peer: str = ""
) -> Caller:
    """Return the caller if it may call this method. Raises `Refusal` if it may not. `peer` is its address, if a proxy has told it."""
    return await authenticator.authorize(method, _read_token(context), peer or context.peer())


def is_anonymous(context: Context) -> bool:
    """Return whether the caller sent no token, not even an unreadable one."""
    return all(key != "authorization" for key, _ in context.invocation_metadata() or ())


def _read_token(context: Context) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            return read_bearer_token(str(value))
    return None


class CallerAddresses:
    """Finds the addresses of callers, also of those behind a proxy that the operator has named."""

    def __init__(self, proxies: Collection[str] = ()) -> None:
        """`proxies` are addresses or networks of proxies, whose `x-forwarded-for` is believed."""
        self._proxies = ProxyNetworks(proxies)

    def peer_of(self, context: Context) -> str:
        """Return the address of the caller in the form of gRPC: `ipv4:192.0.2.1:5123`, without the port if a proxy has told it."""
        peer = str(context.peer())
        address = address_of_peer(peer)
        if not self._proxies.has_address(address):
            return peer
        metadata = context.invocation_metadata() or ()
        forwarded = [str(value) for key, value in metadata if key == "x-forwarded-for"]
        caller = self._proxies.caller_behind(address, forwarded)
        if not caller:
            return peer
        return f"ipv6:[{caller}]" if ":" in caller else f"ipv4:{caller}"


# Refusals in gRPC form: a `google.rpc.Status` with one `ErrorInfo`, a `BadRequest` if an argument is wrong, and a `RetryInfo` if it is
# known when to come back.


def encode_refusal(refusal: Refusal) -> status_pb2.Status:
    """Return the refusal as a `google.rpc.Status`."""
    info = error_details_pb2.ErrorInfo(reason=refusal.reason, domain=ERROR_DOMAIN, metadata=refusal.metadata)
    details = [_pack_detail(info)]
    if refusal.code == "INVALID_ARGUMENT":
        bad = error_details_pb2.BadRequest()
        bad.field_violations.add(field=refusal.metadata.get("field", ""), description=refusal.message)
        details.append(_pack_detail(bad))
    if retry_after := refusal.metadata.get("retry_after"):
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(round(1000 * float(retry_after)))
        details.append(_pack_detail(retry))
    code = grpc.StatusCode[refusal.code]
    return status_pb2.Status(code=code.value[0], message=refusal.message, details=details)


def _pack_detail(detail: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed


async def abort_call(context: grpc.aio.ServicerContext[bytes, bytes], refusal: Refusal) -> NoReturn:
    """End the RPC with the refusal.

    Raises CancelledError, which closes the stream, if the caller does not read the refusal in time.
    """
    COUNTS.refusals[refusal.reason] += 1
    details = ((DETAILS_KEY, encode_refusal(refusal).SerializeToString()),)
    try:
        async with asyncio.timeout(REFUSAL_DELIVERY_S):
            await context.abort(grpc.StatusCode[refusal.code], refusal.message, trailing_metadata=details)
    except TimeoutError:
        raise asyncio.CancelledError("the caller does not read") from None
    raise AssertionError("abort raises")


_HANDLER_KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
"""The fields of a gRPC method handler, of which one is set."""

UNREADABLE = "these bytes are not the request that this method takes"

RequestCheck: TypeAlias = Callable[[Any], Any]
Report: TypeAlias = Callable[[Context], AbstractAsyncContextManager[None]]


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every handler: a refusal becomes its status, any other error becomes INTERNAL, and each call is logged once."""

    def __init__(self, *, logs_calls: bool = True) -> None:
        self._logs_calls = logs_calls

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Return the handler, wrapped. gRPC itself answers calls of unknown methods."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        kind = next(kind for kind in _HANDLER_KINDS if getattr(handler, kind))
        report = partial(_reporting_errors, handler_call_details.method, self._logs_calls)
        wrap = _wrap_stream if handler.response_streaming else _wrap_call
        wrapped = wrap(report, getattr(handler, kind), _request_check(handler))
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


def _wrap_call(report: Report, behaviour: Any, check: RequestCheck) -> Any:
    async def wrapped(request: Any, context: Context) -> Any:
        async with report(context):
            return await behaviour(check(request), context)

    return wrapped


def _wrap_stream(report: Report, behaviour: Any, check: RequestCheck) -> Any:
    """Wrap a stream as a generator, which yields nothing if the stream writes its responses itself.

    Interceptors of others, as that of OpenTelemetry, iterate over every stream of responses. This costs 1 to 2 us for each stream, and
    nothing for a message. To hand each message from the writer to a generator would take 17 us.
    """
    is_generator = isasyncgenfunction(behaviour)

    async def wrapped(request: Any, context: Context) -> AsyncIterator[Any]:
        async with report(context):
            if is_generator:
                async for response in behaviour(check(request), context):
                    yield response
            else:
                await behaviour(check(request), context)

    return wrapped


@asynccontextmanager
async def _reporting_errors(method: str, logs_calls: bool, context: Context) -> AsyncIterator[None]:
    """Tell the caller of every error inside this block as a refusal, and write the call's log line if `logs_calls`."""
    line = CallLog(method)
    with TRACING.open_span("call"):
        try:
            yield
        except grpc.aio.InternalError:  # a response cannot be written because the caller has gone
            line.code = "CANCELLED"
            raise
        except Exception as error:
            await abort_call(context, line.refusal_for(error))
        except asyncio.CancelledError:
            line.code = "CANCELLED"
            raise
        finally:
            if logs_calls:
                line.write_line()


def _request_check(handler: Any) -> RequestCheck:
    """Return the check of a request, or of a stream of requests, that runs before its handler.

    Play parses its bytes itself, so it needs no check.
    """
    if handler.request_deserializer is None:
        return lambda request: request
    return _check_each_request if handler.request_streaming else _check_request


def _check_request(request: Any) -> Any:
    if isinstance(request, UnreadableRequest):
        raise Refusal("MALFORMED", UNREADABLE)
    return request


async def _check_each_request(requests: AsyncIterable[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _check_request(request)
