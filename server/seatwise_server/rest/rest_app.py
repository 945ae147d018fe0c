"""The REST door as an ASGI application: every operation at its URL, every error as JSON, one log line for each request."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Iterable, Sequence

import structlog
from google.protobuf.message import Message
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage

from seatwise_server.json_writer import write_json
from seatwise_server.limits import HTTP_REQUESTS, Places
from seatwise_server.refusal import Refusal
from seatwise_server.rest.event_streams import NDJSON, EventStreams
from seatwise_server.rest.http_call import (
    ASK_AGAIN,
    DO_NOT_KEEP,
    FOREVER,
    JSON_TYPE,
    accepted_type,
    authorize_request,
    cache_control_of,
    call_log_of,
    error_response,
    keep_call_log,
    keep_rate_limit,
    rate_limit_headers,
    read_body,
    text_digest,
    versioned_response,
)
from seatwise_server.rest.json_requests import RequestDecoder
from seatwise_server.rest.openapi import openapi_json
from seatwise_server.rest.operations_page import operations_page
from seatwise_server.rest.routes import HTTP_ROUTES, Endpoint, HttpRoute, UrlTree
from seatwise_server.services.authentication import Authenticator, Caller
from seatwise_server.services.call_log import CallLog
from seatwise_server.services.operations import Operation
from seatwise_server.tracing import TRACING

# Calls from web pages of other origins: which may call, and what the others are told.

_ALLOWED_METHODS = ("GET", "POST", "DELETE")
_ALLOWED_HEADERS = (
    "accept",
    "authorization",
    "content-type",
    "if-none-match",
    "last-event-id",
    "x-request-id",
)
_EXPOSED_HEADERS = (
    "etag",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "www-authenticate",
    "x-request-id",
)


class CrossOriginCalls(CORSMiddleware):
    """Starlette's CORS, with refusals in the form of all others."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        """`origins` may call; `*` stands for every page."""
        super().__init__(app, origins, _ALLOWED_METHODS, _ALLOWED_HEADERS, expose_headers=_EXPOSED_HEADERS)

    def preflight_response(self, request_headers: Headers) -> Response:
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


# The URLs that are no methods: health checks, the OpenAPI document, and the page of operations.

FIVE_MINUTES = "public, max-age=300"
HTML_TYPE = "text/html"


def add_static_pages(urls: UrlTree, is_ready: Callable[[], bool]) -> None:
    """Add these URLs. `is_ready` is what /readyz says."""
    urls.add_endpoint("/healthz", "GET", "/healthz", _health_endpoint(lambda: True))
    urls.add_endpoint("/readyz", "GET", "/readyz", _health_endpoint(is_ready))
    urls.add_endpoint("/v1/openapi.json", "GET", "/v1/openapi.json", _answer_openapi)
    urls.add_endpoint("/v1/docs", "GET", "/v1/docs", _answer_docs)


def _health_endpoint(check: Callable[[], bool]) -> Endpoint:
    async def answer_health(_request: Request, _values: list[str]) -> Response:
        is_well = check()
        body = b'{"status":"SERVING"}' if is_well else b'{"status":"NOT_SERVING"}'
        return Response(body, 200 if is_well else 503, {"cache-control": DO_NOT_KEEP}, JSON_TYPE)

    return answer_health


async def _answer_openapi(request: Request, _values: list[str]) -> Response:
    accepted_type(request, JSON_TYPE)
    # It is made when it is asked for first, which takes longer than a match may wait.
    body = await asyncio.to_thread(openapi_json)
    return versioned_response(request, text_digest(body), FIVE_MINUTES, lambda: body)


async def _answer_docs(request: Request, _values: list[str]) -> Response:
    accepted_type(request, HTML_TYPE)
    page = await asyncio.to_thread(operations_page)
    response = versioned_response(request, text_digest(page.html), FIVE_MINUTES, lambda: page.html, HTML_TYPE)
    response.headers["content-security-policy"] = page.content_security_policy
    return response


# One endpoint for each operation: decode, authorize, admit, call, encode. There is no logic here.

GET_RECORD = "/seatwise.v1.MatchService/GetRecord"
"""Its response is one line that is JSON already, and is sent to the byte."""
_CHAIN = re.compile(rb'"chain":"([0-9a-f]{64})"')


class OperationEndpoint:
    """Serves one operation at its URL."""

    def __init__(
        self, operation: Operation, route: HttpRoute, authenticator: Authenticator, streams: EventStreams
    ) -> None:
        self.operation = operation
        self._decoder = RequestDecoder(route)
        self._authenticator = authenticator
        self._streams = streams

    async def _authorize(self, request: Request, values: list[str]) -> tuple[Caller, Message]:
        """Return the caller and the request message when it is the caller's turn. Raises `Refusal` if it is not allowed."""
        caller = await authorize_request(self._authenticator, self.operation.method, request)
        body = await read_body(request)
        message = self._decoder.decode_request(values, request.scope["query_string"], body)
        try:
            await self.operation.admit(caller, message)
        finally:
            keep_rate_limit(request, self.operation.show_limit(caller))
        return caller, message

    async def answer_post(self, request: Request, values: list[str]) -> Response:
        """Answer what changes something. Nobody keeps the response: it may hold a token."""
        accepted_type(request, JSON_TYPE)
        caller, message = await self._authorize(request, values)
        body = write_json(await self.operation.handle(caller, message))
        return Response(body, headers={"cache-control": DO_NOT_KEEP}, media_type=JSON_TYPE)

    async def answer_get(self, request: Request, values: list[str]) -> Response:
        """Answer what only reads, with a digest of the response as its ETag."""
        accepted_type(request, JSON_TYPE)
        caller, message = await self._authorize(request, values)
        response = await self.operation.handle(caller, message)
        # This costs a tenth of writing the JSON (measured).
        version = text_digest(response.SerializeToString(deterministic=True))
        cache_control = cache_control_of(request, ASK_AGAIN)
        return versioned_response(request, version, cache_control, lambda: write_json(response))

    async def answer_record(self, request: Request, values: list[str]) -> Response:
        """Answers with the line of the record. It never changes, and its chain is its version."""
        accepted_type(request, JSON_TYPE)
        caller, message = await self._authorize(request, values)
        line = (await self.operation.handle(caller, message)).record.encode()
        chain = _CHAIN.search(line)
        version = chain[1].decode() if chain else text_digest(line)
        return versioned_response(request, version, cache_control_of(request, FOREVER), lambda: line + b"\n")

    async def answer_stream(self, request: Request, values: list[str]) -> Response:
        """Answer with the items of a stream, as they come."""
        caller, message = await self._authorize(request, values)
        return self._streams.response_of(request, self.operation.handle(caller, message))


def endpoint_of(
    operation: Operation, route: HttpRoute, authenticator: Authenticator, streams: EventStreams
) -> Endpoint:
    endpoint = OperationEndpoint(operation, route, authenticator, streams)
    if operation.is_streaming:
        return endpoint.answer_stream
    if operation.method == GET_RECORD:
        return endpoint.answer_record
    return endpoint.answer_get if route.verb == "GET" else endpoint.answer_post


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
    """Return the tree of all URLs: the operations that run here, and pages that are none. `is_ready` is what /readyz says."""
    by_method = {operation.method: operation for operation in operations}
    urls = UrlTree()
    for route in HTTP_ROUTES:
        if operation := by_method.get(route.operation):
            endpoint = endpoint_of(operation, route, authenticator, streams)
            urls.add_endpoint(route.path, route.verb, route.operation, endpoint)
    add_static_pages(urls, is_ready)
    return urls


def new_rest_app(urls: UrlTree, cors_origins: Sequence[str] = ()) -> ASGIApp:
    """Return the application. Pages of `cors_origins` may call it from a browser; `*` stands for every page."""
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
            # A client that asks for a WebSocket has the wrong port. Its stream would replace a good one of the same bot.
            if any(name == b"upgrade" and value.lower() == b"websocket" for name, value in scope["headers"]):
                why = "this port takes no WebSockets: connect to that of --ws-port, which is 7481 unless the operator says otherwise"
                raise Refusal("INVALID_ARGUMENT", why)
            found = self._urls.find_endpoint(scope["raw_path"].decode("latin-1"), scope["method"])
            log.method, log.route = found.name, found.path
            response = await found.endpoint(request, found.values)
            await response(scope, receive, send)
        except Exception as error:
            await error_response(log.refusal_for(error))(scope, receive, send)


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
        self._open_requests = Places(HTTP_REQUESTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        log = CallLog("", door="rest")
        keep_call_log(scope, log)
        request_id = _request_id_of(scope)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        status = 0

        async def send_with_headers(message: AsgiMessage) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                limit = rate_limit_headers(scope)
                message["headers"] = [*_with_strict_headers(message["headers"], request_id), *limit]
            await send(message)

        with TRACING.open_span("request"):
            try:
                await self._answer(scope, receive, send_with_headers, log)
            finally:
                if scope["path"] not in QUIET_PATHS:
                    log.write_line(verb=scope["method"], status=status)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, log: CallLog) -> None:
        address = scope["client"][0] if scope["client"] else ""
        if refusal := self._open_requests.find_refusal(address):
            await error_response(log.refusal_for(refusal))(scope, receive, send)
            return
        with self._open_requests.hold_place(address):
            await self._app(scope, receive, send)


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
