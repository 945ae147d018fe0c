"""The state of one HTTP request while the REST door answers it."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.types import Scope

from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_errors import JSON_TYPE, HttpRefusal
from seatwise_server.services.authentication import Authenticator, Caller, read_bearer_token
from seatwise_server.services.call_log import CallLog

LARGEST_BODY = 256 * 1024
"""Bytes, as over gRPC."""
_CALL_LOG = "seatwise.call_log"
_DECODED_HEADERS = "seatwise.headers"


def call_log_of(request: Request) -> CallLog:
    """Returns the log line that is written when this request has been answered."""
    log: CallLog = request.scope[_CALL_LOG]
    return log


def keep_call_log(scope: Scope, log: CallLog) -> None:
    """Keeps the log line beside the request."""
    scope[_CALL_LOG] = log


def headers_of(request: Request) -> Mapping[str, str]:
    """Returns the headers by name in lower case; of two with one name the first. They are decoded once for a request."""
    headers: dict[str, str] | None = request.scope.get(_DECODED_HEADERS)
    if headers is None:
        pairs = reversed(request.scope["headers"])
        headers = {name.decode("latin-1"): text.decode("latin-1") for name, text in pairs}
        request.scope[_DECODED_HEADERS] = headers
    return headers


async def authorize_request(authenticator: Authenticator, method: str, request: Request) -> Caller:
    """Returns the caller if it may call the method. Raises `Refusal` if it may not."""
    client = request.client
    peer = f"{client.host}:{client.port}" if client else ""
    return await authenticator.authorize(
        method, read_bearer_token(headers_of(request).get("authorization")), peer
    )


async def read_body(request: Request) -> bytes:
    """Returns the body. Raises `Refusal` 413 REQUEST_TOO_LARGE, or 415 UNSUPPORTED_MEDIA_TYPE if it is not plain JSON."""
    headers = headers_of(request)
    length = headers.get("content-length")
    if length == "0" or (length is None and "transfer-encoding" not in headers):
        return b""
    if length is not None and int(length) > LARGEST_BODY:  # the parser takes only digits
        raise _too_large()
    body = await _read_all(request)
    if body:
        _check_type(headers.get("content-type", ""), headers.get("content-encoding", "identity"))
    return body


async def _read_all(request: Request) -> bytes:
    chunks, size = [], 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > LARGEST_BODY:
                raise _too_large()
            chunks.append(chunk)
    except ClientDisconnect:
        raise Refusal("MALFORMED", "the connection ended before the body did") from None
    return b"".join(chunks)


def _check_type(content_type: str, encoding: str) -> None:
    media_type, _, parameters = content_type.lower().partition(";")
    is_utf8 = parameters.strip().replace('"', "") in ("", "charset=utf-8")
    if media_type.strip() != JSON_TYPE or not is_utf8:
        message = f"the body must be JSON in UTF-8: send content-type: {JSON_TYPE}"
        raise HttpRefusal(415, "UNSUPPORTED_MEDIA_TYPE", message, {"accept-post": JSON_TYPE})
    if encoding.lower() != "identity":
        raise HttpRefusal(415, "UNSUPPORTED_MEDIA_TYPE", "send the body without a content-encoding")


def _too_large() -> HttpRefusal:
    return HttpRefusal(413, "REQUEST_TOO_LARGE", f"the body of a request has at most {LARGEST_BODY} bytes")


def accepted_type(request: Request, *offered: str) -> str:
    """Returns the first of the offered media types that the caller accepts. Raises `Refusal` 406 NOT_ACCEPTABLE.

    A caller that names one of them is served that one, even if it accepts all.
    """
    header = headers_of(request).get("accept", "*/*")
    if header == "*/*":
        return offered[0]
    wanted = _accepted_types(header)
    for pattern in wanted:
        for media_type in offered:
            if pattern in (media_type, "*/*", media_type.partition("/")[0] + "/*"):
                return media_type
    raise HttpRefusal(406, "NOT_ACCEPTABLE", f"there is only {' and '.join(offered)} here")


def _accepted_types(header: str) -> list[str]:
    """The media types of an Accept header, without those that have a weight of 0; full names before patterns."""
    ranges = []
    for part in header.lower().split(","):
        media_type, *parameters = [each.strip() for each in part.split(";")]
        if not any(_is_zero_weight(each) for each in parameters):
            ranges.append(media_type)
    return sorted(ranges, key=lambda media_type: "*" in media_type)


def _is_zero_weight(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0").rstrip(".") in ("", "0")
