"""ETags: a caller that has the newest response already is not sent it again."""

from __future__ import annotations

import hashlib

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from seatwise_server.rest.http_call import headers_of
from seatwise_server.rest.http_errors import JSON_TYPE

FOREVER = "max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
"""Caches keep the response, and ask each time whether it is still the newest."""
DO_NOT_KEEP = "no-store"


def digest_of(message: Message) -> str:
    """Returns a text that changes when the message does. It costs a tenth of writing the JSON (measured)."""
    return hashlib.blake2b(message.SerializeToString(deterministic=True), digest_size=12).hexdigest()


def text_digest(text: bytes) -> str:
    """Returns a text of fixed length that changes when this one does."""
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def cache_control_of(request: Request, how_long: str) -> str:
    """Returns the cache-control of a GET. No cache gives others what a token has opened."""
    return f"{'private' if 'authorization' in headers_of(request) else 'public'}, {how_long}"


def caching_headers(version: str, cache_control: str) -> dict[str, str]:
    """Returns the headers of a response that is kept. The ETag is weak, because gzip gives the same content other bytes."""
    return {"etag": f'W/"{version}"', "cache-control": cache_control, "vary": "accept-encoding"}


def is_unchanged(request: Request, version: str) -> bool:
    """Whether the caller has this version already: If-None-Match names it."""
    known = headers_of(request).get("if-none-match")
    if known is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in known.split(",")]
    return f'"{version}"' in tags or "*" in tags


def unchanged_response(version: str, cache_control: str) -> Response:
    """Returns 304."""
    return Response(status_code=304, headers=caching_headers(version, cache_control))


def json_response(body: bytes, headers: dict[str, str]) -> Response:
    """Returns 200 with JSON."""
    return Response(body, headers=headers, media_type=JSON_TYPE)
