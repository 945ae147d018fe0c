"""The errors in the OpenAPI document: their schema, and a response for each HTTP status with its reasons."""

from __future__ import annotations

from typing import Any

from seatwise_server.error_body import HTTP_STATUS
from seatwise_server.refusal import REASONS
from seatwise_server.rest.routes import NO_BODY, HttpRoute
from seatwise_server.services.access import ACCESS, SCOPES_OF_BOTS, SCOPES_OF_PEOPLE, Access
from seatwise_server.services.read_budget import is_read

EVERY_CALL = (
    "INVALID_ARGUMENT",
    "TOKEN_UNKNOWN",
    "TOKEN_REVOKED",
    "TOKEN_EXPIRED",
    "SERVER_FULL",
    "INTERNAL",
    "STORE_UNAVAILABLE",
    "SERVER_STOPPING",
)
"""The reasons for which any call may be refused."""
HTTP_REASONS = {
    406: "NOT_ACCEPTABLE",
    408: "REQUEST_TIMEOUT",
    413: "REQUEST_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    431: "REQUEST_TOO_LARGE",
}
"""The reasons that only HTTP knows, by their status."""
ONLY_WITH_A_BODY = (413, 415)

_MESSAGES = {
    "TOKEN_MISSING": "send the token as a header (over gRPC as metadata): authorization: Bearer <token>",
    "TOKEN_UNKNOWN": "this token is unknown",
    "TOKEN_REVOKED": "this token is revoked",
    "TOKEN_EXPIRED": "this token has expired; ask its issuer for a new one",
    "SCOPE_MISSING": "this call needs a token with the scope operate",
    "NOT_ALLOWED": "this call needs the admin token or an access token, not the token of a bot",
    "NOT_FOUND": "there is no match 'matches/kq3v8mzt2nwa', or it is no longer kept",
    "ALREADY_EXISTS": "bots/lowest/versions/1 is registered; register another version, or rotate its token",
    "INVALID_ARGUMENT": "page_size is -1; it must be 0 (for 50) to 1000",
    "MALFORMED": "the body is not a JSON object",
    "NOT_ACCEPTABLE": "there is only application/json here",
    "REQUEST_TIMEOUT": "the request was not complete within 10 s",
    "REQUEST_TOO_LARGE": "the body of a request has at most 262144 bytes",
    "UNSUPPORTED_MEDIA_TYPE": "send the body as application/json",
    "MATCH_NOT_OVER": "matches/kq3v8mzt2nwa is not over; its record can be read when it is",
    "MATCH_VOIDED": "matches/kq3v8mzt2nwa was voided (ABORTED); it has no record",
    "SET_RUNNING": "the match shares its deals with others that are not over",
    "SET_OVER": "sets/round-1 is over or closed; its deals are known",
    "SERVER_FULL": "1000 matches wait for their bots",
    "RATE_EXCEEDED": "you read more than this server allows, or too many others do; ask less often, and for shorter lists",
    "QUOTA_EXCEEDED": "owners/joan has as many bots as it may have; have one deleted, or ask the operator for more",
    "INTERNAL": "the fault is ours; it has been logged",
    "ISSUER_UNAVAILABLE": "the keys of the issuer could not be fetched; try again in a minute",
    "STORE_UNAVAILABLE": "the store does not answer just now; try again",
    "NO_STREAM": "no such stream of this bot is open at this server: open GET /v1/play first",
    "RELAY_LOST": "the gateway has lost its link; open the stream again",
    "SERVER_STOPPING": "the server stops; come back, your matches wait",
}
"""An example of the message of each reason."""


def reasons_of(route: HttpRoute) -> list[str]:
    """Lists the reasons for which a call of this route may be refused, in the order of `REASONS`."""
    reasons = {*EVERY_CALL, *route.own_reasons}
    if ACCESS[route.operation] is not Access.PUBLIC:
        reasons |= {"TOKEN_MISSING", "NOT_ALLOWED"}
    if ACCESS[route.operation] in SCOPES_OF_PEOPLE | SCOPES_OF_BOTS:
        reasons.add("SCOPE_MISSING")
    if is_read(route.operation):
        reasons.add("RATE_EXCEEDED")
    if route.path_field:
        reasons.add("NOT_FOUND")
    if route.body != NO_BODY:
        reasons.add("MALFORMED")
        if ACCESS[route.operation] in SCOPES_OF_BOTS:
            reasons.add("NO_STREAM")
    return [reason for reason in REASONS if reason in reasons]


class ErrorResponses:
    """The responses of errors of one document. Operations with the same reasons share them."""

    def __init__(self) -> None:
        self._responses: dict[str, Any] = {}

    def all_responses(self) -> dict[str, Any]:
        """Returns all that was referred to, by name."""
        return dict(sorted(self._responses.items()))

    def refer_to(self, route: HttpRoute) -> dict[str, Any]:
        """Returns references to the responses of a route's errors, by HTTP status."""
        by_status = {
            status: [reason]
            for status, reason in HTTP_REASONS.items()
            if route.body != NO_BODY or status not in ONLY_WITH_A_BODY
        }
        for reason in reasons_of(route):
            by_status.setdefault(HTTP_STATUS[REASONS[reason]], []).append(reason)
        return {
            str(status): self._refer_to_status(status, reasons)
            for status, reasons in sorted(by_status.items())
        }

    def _refer_to_status(self, status: int, reasons: list[str]) -> dict[str, Any]:
        words = "".join(word.capitalize() for reason in reasons for word in reason.split("_"))
        name = f"Error{status}{words}"
        self._responses[name] = _error_response(status, reasons)
        return {"$ref": f"#/components/responses/{name}"}


def _error_response(status: int, reasons: list[str]) -> dict[str, Any]:
    examples = {reason: {"value": _error_example(status, reason)} for reason in reasons}
    media = {"schema": {"$ref": "#/components/schemas/Error"}, "examples": examples}
    return {
        "description": "Refused with the reason " + " or ".join(f"`{reason}`" for reason in reasons),
        **_error_headers(status),
        "content": {"application/json": media},
    }


def _error_headers(status: int) -> dict[str, Any]:
    if status == 401:
        return {"headers": {"WWW-Authenticate": _header("Bearer: send a token")}}
    if status == 429:
        return {"headers": {"Retry-After": _header("Seconds to wait before the next attempt")}}
    return {}


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


def _error_example(status: int, reason: str) -> dict[str, Any]:
    code = REASONS[reason]
    metadata = {"retry_after": "10"} if code == "RESOURCE_EXHAUSTED" else {}
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "seatwise",
        "metadata": metadata,
    }
    return {"error": {"code": status, "status": code, "message": _MESSAGES[reason], "details": [info]}}


def error_schema() -> dict[str, Any]:
    """Returns the schema of every error: google.rpc.Status as AIP-193 writes it, with exactly one ErrorInfo."""
    info = _closed_object(
        {
            "@type": {"const": "type.googleapis.com/google.rpc.ErrorInfo"},
            "reason": {
                "type": "string",
                "enum": sorted(REASONS),
                "description": "The reason, for a program to read.",
            },
            "domain": {"const": "seatwise"},
            "metadata": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "The facts of the message, by name.",
            },
        }
    )
    error = _closed_object(
        {
            "code": {"type": "integer", "description": "The HTTP status."},
            "status": {"type": "string", "description": "The name of the gRPC code."},
            "message": {"type": "string", "description": "A message for a person to read."},
            "details": {"type": "array", "minItems": 1, "maxItems": 1, "items": info},
        }
    )
    return {**_closed_object({"error": error}), "description": "An error, as AIP-193 writes it."}


def _closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}
