"""Refusals as HTTP tells them: the status of their code, and a body as AIP-193 describes it."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from seatwise_server.counts import COUNTS
from seatwise_server.refusal import HTTP_STATUS, Refusal, write_error_body

JSON_TYPE = "application/json"
CHALLENGE = 'Bearer realm="seatwise"'


class HttpRefusal(Refusal):
    """A refusal that only HTTP knows, with its own status and headers: 405 with Allow, 413."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        **metadata: str,
    ) -> None:
        super().__init__(reason, message, **metadata)
        self.status = status
        self.headers = headers or {}


def http_status_of(refusal: Refusal) -> int:
    """Returns the status of the response that tells of a refusal."""
    return refusal.status if isinstance(refusal, HttpRefusal) else HTTP_STATUS[refusal.code]


def write_error(refusal: Refusal) -> bytes:
    """Returns the refusal as JSON: `{"error": {"code", "status", "message", "details"}}`, with exactly one ErrorInfo."""
    return write_error_body(refusal, http_status_of(refusal))


def error_headers(refusal: Refusal) -> dict[str, str]:
    """Returns the headers of the response that tells of a refusal."""
    headers = {"cache-control": "no-store"}
    if isinstance(refusal, HttpRefusal):
        headers |= refusal.headers
    if http_status_of(refusal) == 401:
        headers["www-authenticate"] = CHALLENGE
    if retry_after := refusal.metadata.get("retry_after"):
        headers["retry-after"] = retry_after
    return headers


def error_response(refusal: Refusal) -> Response:
    """Returns the response that tells of a refusal, and counts it."""
    COUNTS.count_http_refusal(refusal.reason)
    return Response(write_error(refusal), http_status_of(refusal), error_headers(refusal), JSON_TYPE)
