"""Refusals in gRPC form: a `google.rpc.Status` with one `ErrorInfo`, and a `RetryInfo` if it is known when to come back."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from seatwise.errors import DETAILS_KEY
from seatwise_server.counts import COUNTS
from seatwise_server.refusal import ERROR_DOMAIN, REFUSAL_DELIVERY_S, Refusal


def encode_refusal(refusal: Refusal) -> status_pb2.Status:
    """Returns the refusal as a `google.rpc.Status`."""
    info = error_details_pb2.ErrorInfo(reason=refusal.reason, domain=ERROR_DOMAIN, metadata=refusal.metadata)
    details = [_pack_detail(info)]
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
    """Ends the RPC with the refusal.

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
