"""The REST door as an ASGI application: every operation at its URL, every error as JSON, one log line for each request."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Sequence

import structlog
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seatwise_server.refusal import Refusal
from seatwise_server.rest.cross_origin import CrossOriginCalls
from seatwise_server.rest.endpoints import endpoint_of
from seatwise_server.rest.event_streams import NDJSON, EventStreams
from seatwise_server.rest.http_call import call_log_of, keep_call_log
from seatwise_server.rest.http_errors import error_response
from seatwise_server.rest.routes import HTTP_ROUTES
from seatwise_server.rest.static_pages import add_static_pages
from seatwise_server.rest.url_tree import UrlTree
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.call_log import CallLog
from seatwise_server.services.operations import Operation

MOST_REQUESTS_OF_ADDRESS = 256
"""Requests of one address that are answered at the same time, open streams among them."""
SMALLEST_GZIP = 1_000
"""Bytes of a response. Below that gzip saves no packet."""
GZIP_LEVEL = 5
QUIET_PATHS = ("/healthz", "/readyz")
"""Paths that machines call often: they get no log line."""

_ACCEPTS_GZIP = re.compile(rb"(?:^|,)\s*gzip\s*(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))(?:;|,|$)")
"""The coding is named, and its weight is not 0."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_STRICT_HEADERS = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cross-origin-resource-policy": b"cross-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
"""Without headers of its own, a response lets a page load nothing and do nothing."""


def new_url_tree(
    operations: Iterable[Operation],
    authenticator: Authenticator,
    streams: EventStreams,
    is_ready: Callable[[], bool],
) -> UrlTree:
    """Returns the tree of all URLs: the operations that run here, and pages that are none. `is_ready` is what /readyz says."""
    by_method = {operation.method: operation for operation in operations}
    urls = UrlTree()
    for route in HTTP_ROUTES:
        if operation := by_method.get(route.operation):
            endpoint = endpoint_of(operation, route, authenticator, streams)
            urls.add_endpoint(route.path, route.verb, route.operation, endpoint)
    add_static_pages(urls, is_ready)
    return urls


def new_rest_app(urls: UrlTree, cors_origins: Sequence[str] = ()) -> ASGIApp:
    """Returns the application. Pages of `cors_origins` may call it from a browser; `*` stands for every page."""
    app: ASGIApp = _Endpoints(urls)
    app = _GzipOnRequest(app)
    if cors_origins:
        app = CrossOriginCalls(app, cors_origins)
    return RestApp(app)


class _Endpoints:
    """Finds the endpoint, and turns every error into a response."""

    def __init__(self, urls: UrlTree) -> None:
        self._urls = urls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        log = call_log_of(request)
        try:
            _refuse_websocket(scope)
            found = self._urls.find_endpoint(scope["raw_path"].decode("latin-1"), scope["method"])
            log.method = found.name
            response = await found.endpoint(request, found.values)
            await response(scope, receive, send)
        except Exception as error:
            await error_response(log.refusal_for(error))(scope, receive, send)


def _refuse_websocket(scope: Scope) -> None:
    """A client that asks for a WebSocket has the wrong port. Its stream would replace a good one of the same bot."""
    if any(name == b"upgrade" and value.lower() == b"websocket" for name, value in scope["headers"]):
        raise Refusal(
            "INVALID_ARGUMENT",
            "this port takes no WebSockets: connect to that of --ws-port, which is 7481 unless the operator says otherwise",
        )


class _GzipOnRequest:
    """Compresses responses for those who accept that. Others pay nothing for it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        excluded = (*DEFAULT_EXCLUDED_CONTENT_TYPES, NDJSON.media_type)
        self._gzip = GZipMiddleware(app, SMALLEST_GZIP, GZIP_LEVEL, exclude_content_types=excluded)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accepts = any(
            name == b"accept-encoding" and _ACCEPTS_GZIP.search(value) for name, value in scope["headers"]
        )
        await (self._gzip if accepts else self._app)(scope, receive, send)


class RestApp:
    """The outer edge: limits each address, names each request, adds headers to each response, writes each log line."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open_requests: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, as ASGI asks."""
        if scope["type"] != "http":
            return
        log = CallLog("", door="rest")
        keep_call_log(scope, log)
        request_id = _request_id_of(scope)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_strict_headers(message["headers"], request_id)
            await send(message)

        try:
            await self._answer(scope, receive, send_with_headers, log)
        finally:
            if scope["path"] not in QUIET_PATHS:
                log.write_line(verb=scope["method"], status=status)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, log: CallLog) -> None:
        address = scope["client"][0] if scope["client"] else ""
        open_now = self._open_requests.get(address, 0)
        if open_now >= MOST_REQUESTS_OF_ADDRESS:
            message = f"{MOST_REQUESTS_OF_ADDRESS} requests of your address are being answered; wait for them"
            refusal = Refusal("SERVER_FULL", message)
            await error_response(log.refusal_for(refusal))(scope, receive, send)
            return
        self._open_requests[address] = open_now + 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._discount_request(address)

    def _discount_request(self, address: str) -> None:
        self._open_requests[address] -= 1
        if not self._open_requests[address]:
            del self._open_requests[address]


def _request_id_of(scope: Scope) -> str:
    """The caller's own, if it sent one that may stand in a log; a new one if not."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given: str = value.decode("latin-1")
            if _REQUEST_ID.fullmatch(given):
                return given
    return secrets.token_hex(8)


def _with_strict_headers(
    headers: Iterable[tuple[bytes, bytes]], request_id: str
) -> list[tuple[bytes, bytes]]:
    given = list(headers)
    names = {name for name, _ in given}
    given += [header for header in _STRICT_HEADERS.items() if header[0] not in names]
    given.append((b"x-request-id", request_id.encode()))
    return given
