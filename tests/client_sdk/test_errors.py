"""Errors of RPCs become types."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2

from seatwise import errors
from seatwise.v1 import error_pb2


def rpc_error(code: grpc.StatusCode, details: bytes | None = None) -> Any:
    """What grpc.aio raises."""
    trailing = grpc.aio.Metadata(("other", "x"))
    if details is not None:
        trailing.add(errors.DETAILS_KEY, details)
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details="no such bot")


def status(reason: str, **metadata: str) -> bytes:
    info = error_pb2.ErrorInfo(reason=reason, domain="seatwise", metadata=metadata)
    detail = any_pb2.Any(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString())
    return error_pb2.Status(code=16, message="no such bot", details=[detail]).SerializeToString()


def test_reason_metadata_and_message_are_read() -> None:
    error = errors.from_rpc(rpc_error(grpc.StatusCode.UNAUTHENTICATED, status("TOKEN_REVOKED", bot="b")))
    assert type(error) is errors.BadTokenError
    assert (error.reason, error.metadata, error.message) == ("TOKEN_REVOKED", {"bot": "b"}, "no such bot")
    assert str(error) == "no such bot [TOKEN_REVOKED]"


def test_the_reason_says_more_than_the_code() -> None:
    error = errors.from_rpc(rpc_error(grpc.StatusCode.ABORTED, status("REPLACED")))
    assert type(error) is errors.ReplacedError


def test_the_standard_package_reads_the_same_bytes() -> None:
    google = pytest.importorskip("google.rpc.status_pb2")
    details = pytest.importorskip("google.rpc.error_details_pb2")
    info = details.ErrorInfo()
    assert google.Status.FromString(status("NOT_FOUND")).details[0].Unpack(info)
    assert info.reason == "NOT_FOUND"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, errors.BadTokenError),
        (grpc.StatusCode.PERMISSION_DENIED, errors.NotAllowedError),
        (grpc.StatusCode.NOT_FOUND, errors.NotFoundError),
        (grpc.StatusCode.ALREADY_EXISTS, errors.AlreadyExistsError),
        (grpc.StatusCode.INVALID_ARGUMENT, errors.BadRequestError),
        (grpc.StatusCode.FAILED_PRECONDITION, errors.WrongStateError),
        (grpc.StatusCode.UNIMPLEMENTED, errors.NotSupportedError),
        (grpc.StatusCode.UNAVAILABLE, errors.UnavailableError),
        (grpc.StatusCode.ABORTED, errors.UnavailableError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.ServerFullError),
        (grpc.StatusCode.DATA_LOSS, errors.ServerFailedError),
    ],
)
def test_an_unknown_reason_goes_by_its_code(code: grpc.StatusCode, kind: type) -> None:
    error = errors.from_rpc(rpc_error(code, status("FROM_THE_FUTURE")))
    assert type(error) is kind
    assert error.reason == "FROM_THE_FUTURE"


@pytest.mark.parametrize("details", [None, b"", b"\xff\xff\xff", b"\x1a\x02\xff\xff"])
def test_details_that_cannot_be_read_do_no_harm(details: bytes | None) -> None:
    error = errors.from_rpc(rpc_error(grpc.StatusCode.UNAVAILABLE, details))
    assert type(error) is errors.UnavailableError
    assert (error.reason, str(error)) == ("", "no such bot")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1.5", 1.5), ("2s", 2.0), ("", 0.0), ("soon", 0.0), ("-1", 0.0), ("nan", 0.0), ("inf", 300.0)],
)
def test_a_full_server_says_when_to_come_back(text: str, seconds: float) -> None:
    full = status("TABLES_FULL", retry_after=text)
    error = errors.from_rpc(rpc_error(grpc.StatusCode.RESOURCE_EXHAUSTED, full))
    assert isinstance(error, errors.ServerFullError)
    assert error.retry_after == seconds
