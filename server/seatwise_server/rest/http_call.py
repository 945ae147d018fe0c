"""The state of one HTTP request while the REST door answers it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Scope

from seatwise_server.counts import COUNTS
from seatwise_server.limits import RateLimit
from seatwise_server.refusal import Refusal, write_error_body
from seatwise_server.services.authentication import Authenticator, Caller, read_bearer_token
from seatwise_server.services.call_log import CallLog

# Refusals as HTTP tells them: the status of their code, and a body as AIP-193 describes it.

JSON_TYPE = "application/json"
CHALLENGE = 'Bearer realm="seatwise"'


class HttpRefusal(Refusal):
    """A refusal that only HTTP knows, with its own status and headers: 405 with Allow, 413."""

    def __init__(
        self, status: int, reason: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(reason, message)
        self.http_status = status
        self.headers = headers or {}


_RATE_LIMIT = "seatwise.rate_limit"


def keep_rate_limit(request: Request, shown: RateLimit | None) -> None:
    """Keep the limit of the caller beside the request, for the headers of its response."""
    request.scope[_RATE_LIMIT] = shown


def rate_limit_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return the headers RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers), if the call is limited."""
    if not (shown := scope.get(_RATE_LIMIT)):
        return []
    policy = "changes" if scope["method"] == "POST" else "reads"
    return [
        (b"ratelimit-policy", f'"{policy}";q={shown.quota};w={shown.window_s}'.encode()),
        (b"ratelimit", f'"{policy}";r={shown.left};t={shown.full_s}'.encode()),
    ]


def error_headers(refusal: Refusal) -> dict[str, str]:
    headers = {"cache-control": "no-store"}
    if isinstance(refusal, HttpRefusal):
        headers |= refusal.headers
    if refusal.http_status == 401:
        headers["www-authenticate"] = CHALLENGE
    if retry_after := refusal.metadata.get("retry_after"):
        headers["retry-after"] = retry_after
    return headers


def error_response(refusal: Refusal) -> Response:
    """Return the response that tells of a refusal, and count it."""
    COUNTS.count_http_refusal(refusal.reason)
    return Response(write_error_body(refusal), refusal.http_status, error_headers(refusal), JSON_TYPE)


LARGEST_BODY = 256 * 1024
"""Bytes, as over gRPC."""
_CALL_LOG = "seatwise.call_log"
_DECODED_HEADERS = "seatwise.headers"


def call_log_of(request: Request) -> CallLog:
    """Return the log line that is written when this request has been answered."""
    log: CallLog = request.scope[_CALL_LOG]
    return log


def keep_call_log(scope: Scope, log: CallLog) -> None:
    scope[_CALL_LOG] = log


def headers_of(request: Request) -> Mapping[str, str]:
    """Return the headers by name in lower case; of two with one name the first. They are decoded once for a request."""
    headers: dict[str, str] | None = request.scope.get(_DECODED_HEADERS)
    if headers is None:
        pairs = reversed(request.scope["headers"])
        headers = {name.decode("latin-1"): text.decode("latin-1") for name, text in pairs}
        request.scope[_DECODED_HEADERS] = headers
    return headers


async def authorize_request(authenticator: Authenticator, method: str, request: Request) -> Caller:
    """Return the caller if it may call the method. Raises `Refusal` if it may not."""
    client = request.client
    peer = f"{client.host}:{client.port}" if client else ""
    return await authenticator.authorize(
        method, read_bearer_token(headers_of(request).get("authorization")), peer
    )


async def read_body(request: Request) -> bytes:
    """Return the body. Raises `Refusal` 413 REQUEST_TOO_LARGE, or 415 UNSUPPORTED_MEDIA_TYPE if it is not plain JSON."""
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
    """Return the first of the offered media types that the caller accepts. Raises `Refusal` 406 NOT_ACCEPTABLE.

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


# ETags: a caller that has the newest response already is not sent it again.

FOREVER = "max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
"""Caches keep the response, and ask each time whether it is still the newest."""
DO_NOT_KEEP = "no-store"


def text_digest(text: bytes) -> str:
    """Return a text of fixed length that changes when this one does."""
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def cache_control_of(request: Request, how_long: str) -> str:
    """Return the cache-control of a GET. No cache gives others what a token has opened."""
    return f"{'private' if 'authorization' in headers_of(request) else 'public'}, {how_long}"


def caching_headers(version: str, cache_control: str) -> dict[str, str]:
    """Return the headers of a response that is kept. The ETag is weak, because gzip gives the same content other bytes."""
    return {"etag": f'W/"{version}"', "cache-control": cache_control, "vary": "accept-encoding"}


def is_unchanged(request: Request, version: str) -> bool:
    """Whether the caller has this version already: If-None-Match names it."""
    known = headers_of(request).get("if-none-match")
    if known is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in known.split(",")]
    return f'"{version}"' in tags or "*" in tags


def versioned_response(
    request: Request,
    version: str,
    cache_control: str,
    write: Callable[[], bytes],
    media_type: str = JSON_TYPE,
) -> Response:
    """Return 304 if the caller has this version already; if not, 200 with what `write` returns."""
    headers = caching_headers(version, cache_control)
    if is_unchanged(request, version):
        return Response(status_code=304, headers=headers)
    return Response(write(), headers=headers, media_type=media_type)
