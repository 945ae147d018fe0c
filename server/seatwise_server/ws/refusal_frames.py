"""Refusals as a WebSocket tells them: a last text message with the error of AIP-193, and a close code with the reason."""

from __future__ import annotations

from seatwise_server.refusal import HTTP_STATUS, Refusal, write_error_body

FIRST_CLOSE_CODE = 4000
"""Close codes of applications begin here (RFC 6455, section 7.4.2). The number of the canonical code is added."""

_NUMBERS = {
    "INVALID_ARGUMENT": 3,
    "NOT_FOUND": 5,
    "ALREADY_EXISTS": 6,
    "PERMISSION_DENIED": 7,
    "RESOURCE_EXHAUSTED": 8,
    "FAILED_PRECONDITION": 9,
    "ABORTED": 10,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
    "UNAUTHENTICATED": 16,
}
"""Of the canonical codes."""


def close_code(refusal: Refusal) -> int:
    """Returns the code with which a refused WebSocket is closed: 4016 for UNAUTHENTICATED, and so on."""
    return FIRST_CLOSE_CODE + _NUMBERS[refusal.code]


def http_status(refusal: Refusal) -> int:
    """Returns the status of an upgrade that is refused."""
    return HTTP_STATUS[refusal.code]


def encode_error(refusal: Refusal) -> bytes:
    """Returns the refusal as JSON, in the form of AIP-193."""
    return write_error_body(refusal, http_status(refusal))
