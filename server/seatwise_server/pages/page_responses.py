"""Responses of pages: HTML with a strict policy, an ETag, and errors that a person can read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from cachetools import TTLCache
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response

from seatwise_server.pages import page_filters
from seatwise_server.pages.page_calls import note_peer
from seatwise_server.refusal import Refusal
from seatwise_server.rest.caching import (
    ASK_AGAIN,
    caching_headers,
    is_unchanged,
    text_digest,
)
from seatwise_server.rest.http_call import call_log_of
from seatwise_server.rest.http_errors import error_response
from seatwise_server.rest.static_pages import HTML_TYPE
from seatwise_server.rest.url_tree import Endpoint

PAGE_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""A page runs and loads only files of this server, and no text can become a script."""
_PAGE_HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",
    "vary": "accept-encoding",
}


SHARED_PAGE_S = 1.0
KEPT_PAGES = 64
"""Pages of one kind that are kept for so long: many visitors at once cost no more reads than one."""

MakePage: TypeAlias = Callable[[Request, list[str]], Awaitable[bytes]]
"""Returns the HTML of a page; the list has the values of the variable parts of its path."""


@cache
def page_templates() -> Environment:
    """Returns the templates of all pages. They escape every value."""
    environment = Environment(
        loader=PackageLoader("seatwise_server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= page_filters.PAGE_FILTERS
    environment.globals |= page_filters.PAGE_GLOBALS
    return environment


def render_page(template: str, **values: Any) -> bytes:
    """Returns the HTML of a page."""
    return page_templates().get_template(template).render(**values).encode()


def page_response(
    request: Request, html: bytes, *, is_private: bool = False, sockets: Sequence[str] = ()
) -> Response:
    """Returns the page, or 304 if the caller has this version already. A private page is kept by nobody.

    A private page may connect to `sockets`, such as ws://example.org:50053, too.
    """
    if is_private:
        policy = PAGE_POLICY.replace("connect-src 'self'", " ".join(("connect-src 'self'", *sockets)))
        headers = _PAGE_HEADERS | {"content-security-policy": policy, "cache-control": "no-store"}
        return Response(html, headers=headers, media_type=HTML_TYPE)
    version, cache_control = text_digest(html), f"public, {ASK_AGAIN}"
    headers = _PAGE_HEADERS | caching_headers(version, cache_control)
    if is_unchanged(request, version):
        # A browser applies the headers of a 304 to the page that it has kept: without them the page could load nothing.
        return Response(status_code=304, headers=headers)
    return Response(html, headers=headers, media_type=HTML_TYPE)


def public_endpoint(make_page: MakePage) -> Endpoint:
    """Returns the endpoint of a page that everybody sees alike. All who ask within `SHARED_PAGE_S` are sent the same."""
    kept: TTLCache[str, bytes] = TTLCache(KEPT_PAGES, SHARED_PAGE_S)

    async def answer_public(request: Request, values: list[str]) -> Response:
        url = str(request.url)
        html = kept.get(url)
        if html is None:
            html = kept[url] = await make_page(request, values)
        return page_response(request, html)

    return page_endpoint(answer_public)


def page_endpoint(endpoint: Endpoint) -> Endpoint:
    """Returns the endpoint with its refusals as pages instead of JSON."""

    async def answer_page(request: Request, values: list[str]) -> Response:
        note_peer(request)
        try:
            return await endpoint(request, values)
        except Exception as error:
            return _error_page(call_log_of(request).refusal_for(error))

    return answer_page


def _error_page(refusal: Refusal) -> Response:
    plain = error_response(refusal)
    html = render_page("error.html.j2", status=plain.status_code, message=str(refusal))
    kept = {name: plain.headers[name] for name in ("retry-after", "allow") if name in plain.headers}
    headers = _PAGE_HEADERS | kept | {"cache-control": "no-store"}
    return Response(html, plain.status_code, headers, HTML_TYPE)
