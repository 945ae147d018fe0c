"""The files that pages load: styles and scripts, each under a URL that changes with its content."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_call import FOREVER, text_digest

STATIC_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
STATIC_FOLDERS = (("seatwise_server.pages", "static"), ("seatwise.replay", "viewer"))
"""Packages, each with the folder whose files are served. A file's name is unique in all of them."""


@cache
def static_contents() -> dict[str, bytes]:
    """Returns the content of every file by its name."""
    return {
        each.name: each.read_bytes()
        for package, folder in STATIC_FOLDERS
        for each in (files(package) / folder).iterdir()
        if each.name.rpartition(".")[2] in STATIC_TYPES
    }


@cache
def static_version() -> str:
    """Returns a text that changes when one of the files does. It is in every URL, because scripts import one another."""
    return text_digest(b"".join(name.encode() + body for name, body in sorted(static_contents().items())))


def static_url(name: str) -> str:
    """Returns the URL of a file. Raises KeyError if there is none of this name."""
    _ = static_contents()[name]
    return f"/static/{static_version()}/{name}"


async def answer_static(_request: Request, values: list[str]) -> Response:
    """Serves a file. Its URL belongs to this content, so that caches keep it for ever."""
    version, name = values
    body = static_contents().get(name)
    if body is None or version != static_version():
        raise Refusal("NOT_FOUND", f"there is no file {name[:80]!r} of this version; load the page again")
    headers = {"cache-control": f"public, {FOREVER}", "cross-origin-resource-policy": "same-origin"}
    return Response(
        body, headers=headers | {"vary": "accept-encoding"}, media_type=STATIC_TYPES[name.rpartition(".")[2]]
    )
