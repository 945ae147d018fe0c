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
from seatwise_server.rest.http_call import accepted_type, authorize_request, read_body
from seatwise_server.rest.http_errors import JSON_TYPE
from seatwise_server.rest.json_requests import RequestDecoder
from seatwise_server.rest.routes import HttpRoute
from seatwise_server.rest.url_tree import Endpoint
from seatwise_server.services.authentication import Authenticator, Caller
from seatwise_server.services.operations import Operation

GET_RECORD = "/seatwise.v1.MatchService/GetRecord"
"""Its response is one line that is JSON already, and is sent to the byte."""
_CHAIN = re.compile(rb'"chain":"([0-9a-f]{64})"')


class OperationEndpoint:
    """Serves one operation at its URL."""

    def __init__(self, operation: Operation, route: HttpRoute, authenticator: Authenticator) -> None:
        self.operation = operation
        self._decoder = RequestDecoder(route)
        self._authenticator = authenticator

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
        """Answers what only reads, with a digest of the response as its ETag."""
        accepted_type(request, JSON_TYPE)
        caller, message = await self.authorize(request, values)
        cache_control = cache_control_of(request, ASK_AGAIN)
        response = await self.operation.handle(caller, message)
        version = digest_of(response)
        if is_unchanged(request, version):
            return unchanged_response(version, cache_control)
        return json_response(write_json(response), caching_headers(version, cache_control))

    async def answer_record(self, request: Request, values: list[str]) -> Response:
        """Answers with the line of the record. It never changes, and its chain is its version."""
        accepted_type(request, JSON_TYPE)
        caller, message = await self.authorize(request, values)
        cache_control = cache_control_of(request, FOREVER)
        line = (await self.operation.handle(caller, message)).record.encode()
        chain = _CHAIN.search(line)
        version = chain[1].decode() if chain else text_digest(line)
        if is_unchanged(request, version):
            return unchanged_response(version, cache_control)
        return json_response(line + b"\n", caching_headers(version, cache_control))


def endpoint_of(
    operation: Operation,
    route: HttpRoute,
    authenticator: Authenticator,
    streams: EventStreams,
) -> Endpoint:
    """Returns the endpoint of an operation."""
    endpoint = OperationEndpoint(operation, route, authenticator)
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
