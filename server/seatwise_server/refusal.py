"""Refusals: one reason and one sentence for a caller whose request is refused.

`REASONS` is the complete list. docs/protocol.md explains each reason to bot authors, and a test compares the two.
Each door decides in which form it sends a refusal; HTTP and WebSocket send JSON in the form of AIP-193.
"""

from __future__ import annotations

import json
from typing import Final

REASONS: dict[str, str] = {
    "TOKEN_MISSING": "UNAUTHENTICATED",
    "TOKEN_UNKNOWN": "UNAUTHENTICATED",
    "TOKEN_REVOKED": "UNAUTHENTICATED",
    "TOKEN_EXPIRED": "UNAUTHENTICATED",
    "NOT_ALLOWED": "PERMISSION_DENIED",
    "SCOPE_MISSING": "PERMISSION_DENIED",
    "NOT_FOUND": "NOT_FOUND",
    "ALREADY_EXISTS": "ALREADY_EXISTS",
    "INVALID_ARGUMENT": "INVALID_ARGUMENT",
    "MALFORMED": "INVALID_ARGUMENT",
    "METHOD_NOT_ALLOWED": "INVALID_ARGUMENT",
    "NOT_ACCEPTABLE": "INVALID_ARGUMENT",
    "UNSUPPORTED_MEDIA_TYPE": "INVALID_ARGUMENT",
    "REQUEST_TOO_LARGE": "INVALID_ARGUMENT",
    "REQUEST_TIMEOUT": "INVALID_ARGUMENT",
    "MATCH_NOT_OVER": "FAILED_PRECONDITION",
    "MATCH_VOIDED": "FAILED_PRECONDITION",
    "SET_RUNNING": "FAILED_PRECONDITION",
    "SET_OVER": "FAILED_PRECONDITION",
    "NO_STREAM": "FAILED_PRECONDITION",
    "REPLACED": "ABORTED",
    "MATCH_MOVED": "UNAVAILABLE",
    "RELAY_LOST": "UNAVAILABLE",
    "STREAM_TIMEOUT": "UNAVAILABLE",
    "SERVER_FULL": "RESOURCE_EXHAUSTED",
    "RATE_EXCEEDED": "RESOURCE_EXHAUSTED",
    "QUOTA_EXCEEDED": "RESOURCE_EXHAUSTED",
    "SLOW_READER": "RESOURCE_EXHAUSTED",
    "SERVER_STOPPING": "UNAVAILABLE",
    "STORE_UNAVAILABLE": "UNAVAILABLE",
    "ISSUER_UNAVAILABLE": "UNAVAILABLE",
    "INTERNAL": "INTERNAL",
}
"""Every reason, with the name of its canonical gRPC code."""

ERROR_DOMAIN = "seatwise"
RETRY_AFTER_S = "1"
"""Seconds after which the caller should retry, unless the refusal sets its own."""

LONGEST_REFUSAL_TEXT = 300
"""The most characters of a text: it may quote what the caller sent, and all of it travels in one header."""

REFUSAL_DELIVERY_S = 0.4
"""How long a stream that the server ends waits for its caller to read the reason, in seconds.

The whole end takes less than a second.
"""


class Refusal(Exception):  # it is not an error of the server
    """A request is refused, for a documented reason. Raises KeyError for a reason that is not in `REASONS`."""

    def __init__(self, reason: str, message: str, **metadata: str) -> None:
        message = _printable(_cut(message))
        super().__init__(message)
        self.reason = reason
        self.code = REASONS[reason]
        self.http_status = HTTP_STATUS[self.code]
        self.message = message
        if self.code == "RESOURCE_EXHAUSTED":
            metadata = {"retry_after": RETRY_AFTER_S, **metadata}
        self.metadata = {name: _cut(value) for name, value in metadata.items()}


def _printable(text: str) -> str:
    """Escape control characters: the text may quote another caller, and a terminal that shows it would obey them."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_REFUSAL_TEXT else text[: LONGEST_REFUSAL_TEXT - 3] + "..."


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


def write_error_body(refusal: Refusal) -> bytes:
    """Return the refusal as JSON: `{"error": {"code", "status", "message", "details"}}`, with exactly one ErrorInfo."""
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "domain": ERROR_DOMAIN,
        "metadata": dict(sorted(refusal.metadata.items())),
        "reason": refusal.reason,
    }
    error = {
        "code": refusal.http_status,
        "details": [info],
        "message": refusal.message,
        "status": refusal.code,
    }
    return json.dumps({"error": error}, separators=(",", ":"), ensure_ascii=False).encode()


def bad_argument(field: str, message: str) -> Refusal:
    """Return the refusal of an argument. `field` names it, as in `time_control.setup_ms`."""
    return Refusal("INVALID_ARGUMENT", message, field=field)
