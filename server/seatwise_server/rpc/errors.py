"""What a caller is told when something is refused: one code, one reason, one sentence.

Every refusal carries a `google.rpc.Status` with exactly one `ErrorInfo`. `REASONS` is the whole list;
docs/protocol.md explains each to a bot author, and a test holds the two together.
"""

from __future__ import annotations

from typing import NoReturn

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

DOMAIN = "seatwise"
DETAILS_KEY = "grpc-status-details-bin"

REASONS: dict[str, grpc.StatusCode] = {
    "TOKEN_MISSING": grpc.StatusCode.UNAUTHENTICATED,
    "TOKEN_UNKNOWN": grpc.StatusCode.UNAUTHENTICATED,
    "TOKEN_REVOKED": grpc.StatusCode.UNAUTHENTICATED,
    "NOT_ALLOWED": grpc.StatusCode.PERMISSION_DENIED,
    "NOT_FOUND": grpc.StatusCode.NOT_FOUND,
    "ALREADY_EXISTS": grpc.StatusCode.ALREADY_EXISTS,
    "INVALID_ARGUMENT": grpc.StatusCode.INVALID_ARGUMENT,
    "MALFORMED": grpc.StatusCode.INVALID_ARGUMENT,
    "MATCH_NOT_OVER": grpc.StatusCode.FAILED_PRECONDITION,
    "MATCH_VOIDED": grpc.StatusCode.FAILED_PRECONDITION,
    "REPLACED": grpc.StatusCode.ABORTED,
    "SLOW_READER": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "SERVER_STOPPING": grpc.StatusCode.UNAVAILABLE,
    "STORE_UNAVAILABLE": grpc.StatusCode.UNAVAILABLE,
    "INTERNAL": grpc.StatusCode.INTERNAL,
}
"""Every reason, with its gRPC code."""


class Refusal(Exception):  # it is not an error of ours
    """The caller is told no."""

    def __init__(self, reason: str, message: str, **metadata: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.code = REASONS[reason]
        self.message = message
        self.metadata = metadata

    def status(self) -> status_pb2.Status:
        """As `google.rpc.Status`."""
        info = error_details_pb2.ErrorInfo(reason=self.reason, domain=DOMAIN, metadata=self.metadata)
        detail = any_pb2.Any()
        detail.Pack(info)
        return status_pb2.Status(code=self.code.value[0], message=self.message, details=[detail])


async def abort(context: grpc.aio.ServicerContext[bytes, bytes], refusal: Refusal) -> NoReturn:
    """Ends the RPC with the refusal."""
    details = ((DETAILS_KEY, refusal.status().SerializeToString()),)
    await context.abort(refusal.code, refusal.message, trailing_metadata=details)
    raise AssertionError("abort raises")
