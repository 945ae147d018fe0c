"""One endpoint for each operation: decode, authorize, admit, call, encode. There is no logic here."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from seatwise_server.json_writer import write_json
from seatwise_server.rest.caching import (
    ASK_AGAIN,
    DO_NOT_KEEP,
    FOREVER,
    cache_control_of,
    caching_headers,
    digest_of,
    is_unchanged,
    json_response,
    text_digest,
    unchanged_response,
)
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.http_call import accepted_type, authorize_request, headers_of, read_body
from seatwise_server.rest.http_errors import JSON_TYPE
from seatwise_server.rest.json_requests import RequestDecoder
from seatwise_server.rest.known_versions import KnownVersions, version_key
from seatwise_server.rest.routes import HttpRoute
from seatwise_server.rest.url_tree import Endpoint
from seatwise_server.services.authentication import Authenticator, Caller
from seatwise_server.services.operations import Operation
from seatwise_server.store.redis.recorded_reads import recording_reads

GET_RECORD = "/seatwise.v1.MatchService/GetRecord"
"""Its response is one line that is JSON already, and is sent to the byte."""
_CHAIN = re.compile(rb'"chain":"([0-9a-f]{64})"')


class OperationEndpoint:
    """Serves one operation at its URL."""

    def __init__(
        self, operation: Operation, route: HttpRoute, authenticator: Authenticator, versions: KnownVersions
    ) -> None:
        self.operation = operation
        self._decoder = RequestDecoder(route)
        self._authenticator = authenticator
        self._versions = versions

    async def authorize(self, request: Request, values: list[str]) -> tuple[Caller, Message]:
        """Returns the caller and the request message when it is the caller's turn. Raises `Refusal` if it is not allowed."""
        caller = await authorize_request(self._authenticator, self.operation.method, request)
        body = await read_body(request)
        message = self._decoder.decode_request(values, request.scope["query_string"], body)
        await self.operation.admit(caller, message)
        return caller, message

    async def answer_post(self, request: Request, values: list[str]) -> Response:
        """Answers what changes something. Nobody keeps the response: it may hold a token."""
        accepted_type(request, JSON_TYPE)
        caller, message = await self.authorize(request, values)
        response = await self.operation.handle(caller, message)
        return json_response(write_json(response), {"cache-control": DO_NOT_KEEP})

    async def answer_get(self, request: Request, values: list[str]) -> Response:
        """Answers what only reads, with an ETag: the version that the service tells, or a digest."""
        accepted_type(request, JSON_TYPE)
        caller, message = await self.authorize(request, values)
        cache_control = cache_control_of(request, ASK_AGAIN)
        if "if-none-match" not in headers_of(request):
            version, response = await self._read(caller, message)
            return json_response(write_json(response), caching_headers(version, cache_control))
        key = version_key(self.operation.method, caller, message)
        known = self._versions.get_version(key)
        if known and is_unchanged(request, known.version) and await known.reads.is_unchanged():
            return unchanged_response(known.version, cache_control)
        with recording_reads() as reads:
            version, response = await self._read(caller, message)
        self._versions.keep_version(key, version, reads)
        if is_unchanged(request, version):
            return unchanged_response(version, cache_control)
        return json_response(write_json(response), caching_headers(version, cache_control))

    async def _read(self, caller: Caller, message: Message) -> tuple[str, Message]:
        """Returns the response and its version. The version is read first: it must not be newer than the response."""
        version = await self._told_version(caller, message)
        response = await self.operation.handle(caller, message)
        return version or digest_of(response), response

    async def answer_record(self, request: Request, values: list[str]) -> Response:
        """Answers with the line of the record. It never changes, and its chain is its version."""
        accepted_type(request, JSON_TYPE)
        caller, message = await self.authorize(request, values)
        cache_control = cache_control_of(request, FOREVER)
        if "if-none-match" in headers_of(request):
            version = await self._told_version(caller, message)
            if version and is_unchanged(request, version):
                return unchanged_response(version, cache_control)
        line = (await self.operation.handle(caller, message)).record.encode()
        chain = _CHAIN.search(line)
        version = chain[1].decode() if chain else text_digest(line)
        return json_response(line + b"\n", caching_headers(version, cache_control))

    async def _told_version(self, caller: Caller, message: Message) -> str:
        if self.operation.version is None:
            return ""
        return await self.operation.version(caller, message)


def endpoint_of(
    operation: Operation,
    route: HttpRoute,
    authenticator: Authenticator,
    streams: EventStreams,
    versions: KnownVersions,
) -> Endpoint:
    """Returns the endpoint of an operation. All endpoints share the memory of `versions`."""
    endpoint = OperationEndpoint(operation, route, authenticator, versions)
    if operation.is_streaming:
        return _stream_endpoint(endpoint, streams)
    if operation.method == GET_RECORD:
        return endpoint.answer_record
    return endpoint.answer_get if route.verb == "GET" else endpoint.answer_post


def _stream_endpoint(endpoint: OperationEndpoint, streams: EventStreams) -> Endpoint:
    async def answer_stream(request: Request, values: list[str]) -> Response:
        caller, message = await endpoint.authorize(request, values)
        items: AsyncGenerator[Any, None] = endpoint.operation.handle(caller, message)
        return streams.response_of(request, items)

    return answer_stream
