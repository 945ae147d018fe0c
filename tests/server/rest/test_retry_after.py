"""Whoever is refused because something is full or used up is told when to come back, by every door."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from google.rpc import error_details_pb2

import seatwise_server
from seatwise_server.refusal import REASONS, RETRY_AFTER_S, Refusal, write_error_body
from seatwise_server.rest.http_call import error_response
from seatwise_server.rpc.error_interceptor import encode_refusal

FULL = sorted(reason for reason, code in REASONS.items() if code == "RESOURCE_EXHAUSTED")


def refusals_in_source() -> list[tuple[str, str, ast.expr | None]]:
    """Every place of the server that refuses because something is full: where, the reason, and when to come back."""
    root = Path(seatwise_server.__file__).parent
    return [
        (f"{path.relative_to(root)}:{call.lineno}", reason, told_wait_of(call))
        for path in sorted(root.rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and (reason := reason_of(call)) in FULL
    ]


def reason_of(call: ast.Call) -> str:
    is_refusal = isinstance(call.func, ast.Name) and call.func.id in ("Refusal", "HttpRefusal")
    texts = [it.value for it in call.args[:2] if isinstance(it, ast.Constant) and it.value in REASONS]
    return str(texts[0]) if is_refusal and texts else ""


def told_wait_of(call: ast.Call) -> ast.expr | None:
    return next((it.value for it in call.keywords if it.arg == "retry_after"), None)


def test_every_door_tells_when_to_come_back() -> None:
    found = refusals_in_source()
    assert {reason for _, reason, _ in found} == set(FULL)
    assert len(found) >= 15
    for place, reason, told in found:
        come_back_is_told(place, reason, told)


def come_back_is_told(place: str, reason: str, told: ast.expr | None) -> None:
    wait = told.value if isinstance(told, ast.Constant) else "17" if told else None
    refusal = Refusal(reason, "full", **({} if wait is None else {"retry_after": str(wait)}))
    expected = str(wait or RETRY_AFTER_S)
    info, retry = encode_refusal(refusal).details
    error, come_back = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    assert info.Unpack(error), place
    assert retry.Unpack(come_back)
    assert (error.reason, error.metadata["retry_after"]) == (reason, expected), place
    assert (come_back.retry_delay.seconds, come_back.retry_delay.nanos) == (int(expected), 0)
    response = error_response(refusal)
    assert (response.status_code, response.headers["retry-after"]) == (429, expected)
    assert f'"retry_after":"{expected}"'.encode() in write_error_body(refusal)
    assert int(expected) >= 1, place


@pytest.mark.parametrize("reason", sorted(REASONS.keys() - set(FULL)))
def test_no_other_refusal_names_a_time(reason: str) -> None:
    refusal = Refusal(reason, "no")
    details = encode_refusal(refusal).details
    assert details[0].Is(error_details_pb2.ErrorInfo.DESCRIPTOR)
    assert not any(detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for detail in details)
    assert "retry-after" not in error_response(refusal).headers
