"""Forms that a page sends: only from a page of this server, and only small ones."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request

from seatwise_server.rest.http_errors import HttpRefusal

LARGEST_FORM = 4096
"""Bytes: a token, and what a form adds to it."""


def check_own_page(request: Request) -> None:
    """Raises `Refusal` if another site's page has sent the form."""
    origin = request.headers.get("origin", "")
    site = request.headers.get("sec-fetch-site", "same-origin")
    if urlsplit(origin).netloc != request.headers.get("host", "") or site != "same-origin":
        raise HttpRefusal(403, "NOT_ALLOWED", "this form must be sent from the page of this server")


async def read_form(request: Request) -> dict[str, str]:
    """Returns the first value of each field. Raises `HttpRefusal` if the form is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise HttpRefusal(413, "REQUEST_TOO_LARGE", f"a form has at most {LARGEST_FORM} bytes")
    return {name: values[0] for name, values in parse_qs(body.decode("latin-1")).items()}
