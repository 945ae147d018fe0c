"""Calls from web pages of other origins: which may call, and what the others are told."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_errors import error_response

_ALLOWED_METHODS = ("GET", "POST", "DELETE")
_ALLOWED_HEADERS = (
    "accept",
    "authorization",
    "content-type",
    "if-none-match",
    "last-event-id",
    "x-request-id",
)
_EXPOSED_HEADERS = ("etag", "retry-after", "www-authenticate", "x-request-id")


class CrossOriginCalls(CORSMiddleware):
    """Starlette's CORS, with refusals in the form of all others."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        """`origins` may call; `*` stands for every page."""
        super().__init__(app, origins, _ALLOWED_METHODS, _ALLOWED_HEADERS, expose_headers=_EXPOSED_HEADERS)

    def preflight_response(self, request_headers: Headers) -> Response:
        """Returns the answer to the question of a browser whether a page may call."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        error = error_response(self._refusal_of(request_headers))
        error.headers["vary"] = response.headers["vary"]
        return error

    def _refusal_of(self, request_headers: Headers) -> Refusal:
        origin = request_headers["origin"]
        if not self.is_allowed_origin(origin):
            message = (
                f"pages of {origin[:80]!r} may not call this server; its operator can allow it: --http-cors"
            )
            return Refusal("NOT_ALLOWED", message)
        message = f"a page may call with {', '.join(_ALLOWED_METHODS)} and the headers {', '.join(_ALLOWED_HEADERS)}"
        return Refusal("INVALID_ARGUMENT", message)
