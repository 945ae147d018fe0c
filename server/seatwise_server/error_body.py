"""Writes refusals as JSON, in the form of AIP-193, for the doors that speak it: HTTP and WebSocket."""

from __future__ import annotations

import json
from typing import Any, Final

from seatwise_server.refusal import ERROR_DOMAIN, Refusal

HTTP_STATUS: Final = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
}
"""The status of HTTP by canonical code, as google.rpc.Code says."""


def write_error_body(refusal: Refusal, status: int) -> bytes:
    """Returns the refusal as JSON: `{"error": {"code", "status", "message", "details"}}`, with exactly one ErrorInfo."""
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "domain": ERROR_DOMAIN,
        "metadata": dict(sorted(refusal.metadata.items())),
        "reason": refusal.reason,
    }
    error: dict[str, Any] = {
        "code": status,
        "details": [info],
        "message": refusal.message,
        "status": refusal.code,
    }
    return json.dumps({"error": error}, separators=(",", ":"), ensure_ascii=False).encode()
