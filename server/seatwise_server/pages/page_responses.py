"""Responses of pages: HTML with a strict policy, an ETag, and errors that a person can read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, quote, urlsplit

from cachetools import TTLCache
from google.protobuf.timestamp_pb2 import Timestamp
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from seatwise.kits import KITS
from seatwise.link.endpoint import is_local_address
from seatwise.v1 import bot_pb2, match_pb2
from seatwise_server.pages.static_files import static_url
from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_call import (
    ASK_AGAIN,
    HttpRefusal,
    caching_headers,
    call_log_of,
    error_response,
    is_unchanged,
    text_digest,
)
from seatwise_server.rest.rest_app import HTML_TYPE
from seatwise_server.rest.routes import Endpoint
from seatwise_server.services.authentication import Authenticator, Caller
from seatwise_server.services.operations import Operation


class PageCalls:
    """The operations of this process, as pages call them. A page shows nothing that the API does not show."""

    def __init__(self, operations: Iterable[Operation], authenticator: Authenticator) -> None:
        self._operations = {operation.method: operation for operation in operations}
        self._authenticator = authenticator

    async def call(self, method: str, token: str | None = None, **fields: Any) -> Any:
        """Call a method, such as MatchService/GetMatch, and return its response. Without a token anybody may see it.

        Raises `Refusal` as the operation does, or if the token does not give the right, or if the caller reads too much.
        """
        operation, caller, request = await self._find_call(method, token, fields)
        await operation.admit(caller, request)
        return await operation.handle(caller, request)

    async def list_matches(self, **fields: Any) -> Any:
        """Call MatchService/ListMatches; see `call`."""
        return await self.call("MatchService/ListMatches", **fields)

    async def admit(self, method: str, **fields: Any) -> None:
        """Raise `Refusal` where anybody who called this method now would be refused before it began."""
        operation, caller, request = await self._find_call(method, None, fields)
        await operation.admit(caller, request)

    async def open_shared_stream(self, method: str, **fields: Any) -> AsyncGenerator[Any, None]:
        """Call a method that streams, for several people who have been admitted each."""
        operation, caller, request = await self._find_call(method, None, fields)
        responses: AsyncGenerator[Any, None] = operation.handle(caller, request)
        return responses

    async def _find_call(
        self, method: str, token: str | None, fields: dict[str, Any]
    ) -> tuple[Operation, Caller, Any]:
        operation = self._operations[f"/seatwise.v1.{method}"]
        caller = await self._authenticator.authorize(operation.method, token, _peer.get())
        return operation, caller, operation.request_type(**fields)


_peer: ContextVar[str] = ContextVar("peer of a page", default="")


def peer_of_page() -> str:
    """Return the address of the caller of the page that is made now, as host:port."""
    return _peer.get()


def note_peer(request: Request) -> None:
    """Notes who asks for the page that is made from now on: reads are counted by address."""
    _peer.set(f"{request.client.host}:{request.client.port}" if request.client else "")


def address_of(request: Request) -> str:
    """Return the address at which the browser reached this server, such as https://example.org; empty if it names none."""
    host = request.headers.get("host", "")
    is_plain = host.isascii() and all(each.isalnum() or each in "-.:[]_" for each in host)
    return f"{request.url.scheme}://{host}" if host and is_plain else ""


_SIGNS_OF_PROXIES = {
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
}
"""Headers that browsers do not send."""


def is_private_connection(request: Request) -> bool:
    """Whether nobody between can read a token: the connection is encrypted, or does not leave this machine.

    A proxy on this machine that nobody has named looks like a browser here. So no header may tell of one, no browser speaks
    HTTP/1.0, and the browser must have been sent to this very port of this machine.
    """
    if request.url.scheme == "https":
        return True
    if request.scope["http_version"] != "1.1" or not _SIGNS_OF_PROXIES.isdisjoint(request.headers.keys()):
        return False
    host, server = request.headers.get("host", ""), request.scope["server"]
    return bool(
        request.client
        and is_local_address(_host_and_port(request.client.host.removeprefix("::ffff:"), 0))
        and is_local_address(host)
        and server
        and host.rpartition(":")[2] == str(server[1])
    )


def _host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# Turns resources of the API into the words that pages show.

LONGEST_LABEL: Final = 18

_STATE_WORDS: Final = {
    match_pb2.Match.STATE_WAITING: "waits for its bots",
    match_pb2.Match.STATE_SEATING: "the bots sit down",
    match_pb2.Match.STATE_RUNNING: "live",
    match_pb2.Match.STATE_FINISHED: "finished",
    match_pb2.Match.STATE_VOIDED: "void",
}
_KIND_WORDS: Final = {
    number: name.removeprefix("BOT_KIND_").lower().replace("_", " ")
    for name, number in bot_pb2.BotKind.items()
    if number
}
_ENDINGS: Final = {
    "COMPLETED": "played to the end",
    "RESIGNED": "resigned",
    "TIMED_OUT": "forfeited: too many time-outs",
    "ILLEGAL_MOVES": "forfeited: too many illegal moves",
    "NEVER_SAT": "forfeited: did not sit down",
}


def kind_words(kind: int) -> str:
    """Return how a bot finds its moves, in words; empty where nobody has said it, and for a kind that this version does not know."""
    return _KIND_WORDS.get(kind, "")


def bot_label(name: str) -> str:
    """Return how a page calls a bot: "alice", or "alice 2" for a version that is not the first."""
    _, bot, _, version = name.split("/")
    return bot if version == "1" else f"{bot} {version}"


def short_label(name: str) -> str:
    """Return the label of a bot, cut to the room that a figure has for it."""
    label = bot_label(name)
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def page_link(name: str) -> str:
    """Return the URL of a resource's page."""
    return "/" + quote(name)


def last_part(name: str) -> str:
    """Return the id of a resource: "main" of ladders/main."""
    return name.rpartition("/")[2]


def game_title(name: str) -> str:
    """Return the title of a game: "UGO!" of games/ugo."""
    kit = KITS.get(last_part(name))
    return kit.title if kit else last_part(name)


def state_words(state: match_pb2.Match.State) -> str:
    """Return the state of a match in words."""
    return _STATE_WORDS.get(state, "unknown")


def ending_words(ending: int | str) -> str:
    """Return in words how a seat came to the end."""
    name = ending if isinstance(ending, str) else match_pb2.Ending.Name(match_pb2.Ending.ValueType(ending))
    return _ENDINGS.get(name.removeprefix("ENDING_"), "unknown")


def order_of(values: Sequence[int], is_ranks: bool) -> list[int]:
    """Return the seats with the first one before the others: that of the least rank, or of the most points."""
    return sorted(range(len(values)), key=lambda seat: values[seat] if is_ranks else -values[seat])


def show_time(time: Timestamp) -> Markup:
    """Return a point in time, in UTC, for people and for programs."""
    told = time.ToDatetime()
    return Markup('<time datetime="{}">{}</time>').format(
        told.strftime("%Y-%m-%dT%H:%M:%SZ"), told.strftime("%Y-%m-%d %H:%M UTC")
    )


def show_span(milliseconds: float) -> str:
    """Return a span of time with the unit that suits it."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 60_000 else f"{milliseconds / 60_000:.1f} min"


_FILTERS: Final[Sequence[Callable[..., Any]]] = (
    bot_label, kind_words, page_link, last_part, game_title, state_words, ending_words, order_of, show_time, show_span
)  # fmt: skip
PAGE_FILTERS: Final = {each.__name__: each for each in _FILTERS}


def has_png() -> bool:
    """Return whether the server can make pictures as PNG: many sites show no SVG."""
    return find_spec("resvg_py") is not None


PAGE_GLOBALS: Final[Mapping[str, Callable[..., Any]]] = {"static": static_url, "has_png": has_png}


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
    """Return the templates of all pages. They escape every value."""
    environment = Environment(
        loader=PackageLoader("seatwise_server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= PAGE_FILTERS
    environment.globals |= PAGE_GLOBALS
    return environment


def render_page(template: str, **values: Any) -> bytes:
    """Return the HTML of a page."""
    return page_templates().get_template(template).render(**values).encode()


def page_response(
    request: Request, html: bytes, *, is_private: bool = False, sockets: Sequence[str] = (), frames_of: Sequence[str] = ()
) -> Response:  # fmt: skip
    """Return the page, or 304 if the caller has this version already. A private page is kept by nobody.

    A private page may connect to `sockets`, such as ws://example.org:50053, too. Pages of the origins `frames_of` may show the
    page in a frame.
    """
    if is_private:
        policy = PAGE_POLICY.replace("connect-src 'self'", " ".join(("connect-src 'self'", *sockets)))
        headers = _PAGE_HEADERS | {"content-security-policy": policy, "cache-control": "no-store"}
        return Response(html, headers=headers, media_type=HTML_TYPE)
    version, cache_control = text_digest(html), f"public, {ASK_AGAIN}"
    headers = _PAGE_HEADERS | caching_headers(version, cache_control)
    if frames_of:
        allowed = f"frame-ancestors {' '.join(frames_of)}"
        headers["content-security-policy"] = PAGE_POLICY.replace("frame-ancestors 'none'", allowed)
    if is_unchanged(request, version):
        # A browser applies the headers of a 304 to the page that it has kept: without them the page could load nothing.
        return Response(status_code=304, headers=headers)
    return Response(html, headers=headers, media_type=HTML_TYPE)


def public_endpoint(make_page: MakePage, frames_of: Sequence[str] = ()) -> Endpoint:
    """Return the endpoint of a page that all see alike, but for links to files that others could exchange on the way. All who ask within `SHARED_PAGE_S` are sent the same."""
    kept: TTLCache[tuple[str, bool], bytes] = TTLCache(KEPT_PAGES, SHARED_PAGE_S)

    async def answer_public(request: Request, values: list[str]) -> Response:
        asked = str(request.url), is_private_connection(request)
        html = kept.get(asked)
        if html is None:
            html = kept[asked] = await make_page(request, values)
        return page_response(request, html, frames_of=frames_of)

    return page_endpoint(answer_public)


def page_endpoint(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with its refusals as pages instead of JSON."""

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


def see_other(url: str) -> Response:
    """Return 303 to another page, so that loading that page again does not send a form again."""
    return Response(status_code=303, headers={"location": url, "cache-control": "no-store"})


def put_cookie(response: Response, request: Request, name: str, value: str, path: str, age_s: int) -> None:
    """Set a cookie. Only pages below `path` get it, no script reads it, and no other site makes a browser send it."""
    is_secure = request.url.scheme == "https"
    response.set_cookie(name, value, age_s, path=path, secure=is_secure, httponly=True, samesite="strict")


# Forms that a page sends: only from a page of this server, and only small ones.

LARGEST_FORM = 4096
"""Bytes: a token, and what a form adds to it."""


def check_own_page(request: Request) -> None:
    """Raise `Refusal` if another site's page has sent the form."""
    origin = request.headers.get("origin", "")
    site = request.headers.get("sec-fetch-site", "same-origin")
    if urlsplit(origin).netloc != request.headers.get("host", "") or site != "same-origin":
        raise HttpRefusal(403, "NOT_ALLOWED", "this form must be sent from the page of this server")


async def read_form(request: Request) -> dict[str, str]:
    """Return the first value of each field. Raises `HttpRefusal` if the form is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise HttpRefusal(413, "REQUEST_TOO_LARGE", f"a form has at most {LARGEST_FORM} bytes")
    return {name: values[0] for name, values in parse_qs(body.decode("latin-1")).items()}
