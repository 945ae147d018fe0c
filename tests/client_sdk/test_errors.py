"""Errors of RPCs become types."""

from __future__ import annotations

import json
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


BODIES: dict[str, Any] = {
    "a time that is a number": {"metadata": {"retry_after": 5}},
    "facts that are none": {"metadata": 3},
    "a reason that is a list": {"reason": []},
    "no reason": {"reason": None},
}


@pytest.mark.parametrize("wrong", BODIES.values(), ids=BODIES)
def test_an_error_in_json_that_is_none_is_told(wrong: dict[str, Any]) -> None:
    """A time to wait that was a number ended a bot with a traceback."""
    info = {"reason": "SERVER_FULL", "metadata": {"retry_after": "5"}}
    bodies = [
        json.dumps(
            {"error": {"status": "RESOURCE_EXHAUSTED", "message": "full", "details": [facts]}}
        ).encode()
        for facts in (info, {**info, **wrong})
    ]
    right = errors.from_json(bodies[0])
    assert isinstance(right, errors.ServerFullError)
    assert (right.retry_after, str(right)) == (5.0, "full [SERVER_FULL]")
    told = errors.from_json(bodies[1])
    assert isinstance(told, errors.UnavailableError)
    assert str(told) == "the server has sent an error that cannot be read"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'"error"', b"[" * 100_000, b"\xff", b'{"error":[]}', b'{"error":{}}']
)
def test_a_body_that_is_no_error_is_told(body: bytes) -> None:
    assert isinstance(errors.from_json(body), errors.UnavailableError)


def test_an_error_of_a_server_moves_no_cursor() -> None:
    raised = grpc.aio.AioRpcError(
        grpc.StatusCode.UNAVAILABLE,
        grpc.aio.Metadata(),
        grpc.aio.Metadata((errors.DETAILS_KEY, status("\x1b[2J" * 100, bot="\n"))),
        details="\x1b[2J\n" * 5000,
    )
    error = errors.from_rpc(raised)
    assert str(error).isprintable()
    assert len(str(error)) < 5000
    assert error.metadata == {"bot": "?"}
