"""The URLs that are no methods: health checks, the OpenAPI document, and the page of operations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from seatwise_server.rest.caching import (
    DO_NOT_KEEP,
    caching_headers,
    is_unchanged,
    text_digest,
    unchanged_response,
)
from seatwise_server.rest.http_call import accepted_type
from seatwise_server.rest.http_errors import JSON_TYPE
from seatwise_server.rest.openapi import openapi_json
from seatwise_server.rest.operations_page import operations_page
from seatwise_server.rest.url_tree import Endpoint, UrlTree

FIVE_MINUTES = "public, max-age=300"
HTML_TYPE = "text/html"


def add_static_pages(urls: UrlTree, is_ready: Callable[[], bool]) -> None:
    """Adds these URLs. `is_ready` is what /readyz says."""
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
    return _page_response(request, await asyncio.to_thread(openapi_json), JSON_TYPE)


async def _answer_docs(request: Request, _values: list[str]) -> Response:
    accepted_type(request, HTML_TYPE)
    page = await asyncio.to_thread(operations_page)
    response = _page_response(request, page.html, HTML_TYPE)
    response.headers["content-security-policy"] = page.content_security_policy
    return response


def _page_response(request: Request, body: bytes, media_type: str) -> Response:
    version = text_digest(body)
    if is_unchanged(request, version):
        return unchanged_response(version, FIVE_MINUTES)
    return Response(body, headers=caching_headers(version, FIVE_MINUTES), media_type=media_type)
