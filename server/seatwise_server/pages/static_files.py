"""The files that pages load, each under a URL that changes with its content, and those that visitors download."""

from __future__ import annotations

import asyncio
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import structlog
from starlette.requests import Request
from starlette.responses import Response

from seatwise_server.config import HttpSettings
from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_call import ASK_AGAIN, FOREVER, text_digest

STATIC_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
STATIC_FOLDERS = (("seatwise_server.pages", "static"), ("seatwise.replay", "viewer"))
"""Packages, each with the folder whose files are served. A file's name is unique in all of them."""


@cache
def static_contents() -> dict[str, bytes]:
    """Return the content of every file by its name."""
    return {
        each.name: each.read_bytes()
        for package, folder in STATIC_FOLDERS
        for each in (files(package) / folder).iterdir()
        if each.name.rpartition(".")[2] in STATIC_TYPES
    }


@cache
def static_version() -> str:
    """Return a text that changes when one of the files does. It is in every URL, because scripts import one another."""
    return text_digest(b"".join(name.encode() + body for name, body in sorted(static_contents().items())))


def static_url(name: str) -> str:
    """Return the URL of a file. Raises KeyError if there is none of this name."""
    _ = static_contents()[name]
    return f"/static/{static_version()}/{name}"


async def answer_static(_request: Request, values: list[str]) -> Response:
    """Serve a file. Its URL belongs to this content, so that caches keep it for ever."""
    version, name = values
    body = static_contents().get(name)
    if body is None or version != static_version():
        raise Refusal("NOT_FOUND", f"there is no file {name[:80]!r} of this version; load the page again")
    headers = {"cache-control": f"public, {FOREVER}", "cross-origin-resource-policy": "same-origin"}
    headers["vary"] = "accept-encoding"
    return Response(body, headers=headers, media_type=STATIC_TYPES[name.rpartition(".")[2]])


ROBOTS = "User-agent: *\nDisallow: /operators\nDisallow: /seats\nDisallow: /v1\n"


async def answer_robots(_request: Request, _values: list[str]) -> Response:
    """Say which pages are for search engines: those that everybody may see, as pages and not as JSON."""
    return Response(ROBOTS, headers={"cache-control": "public, max-age=86400"}, media_type="text/plain")


async def answer_favicon(_request: Request, _values: list[str]) -> Response:
    """Serve the icon where programs look for it that read no page."""
    headers = {"cache-control": "public, max-age=86400", "cross-origin-resource-policy": "same-origin"}
    return Response(static_contents()["icon.svg"], headers=headers, media_type=STATIC_TYPES["svg"])


# Downloads for visitors: the wheel that the operator offers, and a certificate that the server has made.

DOWNLOADS = "/dist"
CERTIFICATE = "tls.crt"
INSTALL = "Install it in a clone of the repository: pip install ."

log = structlog.get_logger()


class Downloads:
    """The files under /dist/, and how a visitor gets Seatwise."""

    def __init__(self, settings: HttpSettings) -> None:
        self.settings = settings
        self.wheel = b""
        """Read once, so that its hash is that of the file that is served."""
        try:
            self.wheel = Path(settings.wheel).read_bytes() if settings.wheel else b""
        except OSError as error:
            log.warning("wheel_not_read", file=settings.wheel, why=error.strerror)

    @property
    def wheel_path(self) -> str:
        """The path of the wheel with its hash, which pip checks; empty if there is none."""
        if not self.wheel:
            return ""
        return f"{DOWNLOADS}/{Path(self.settings.wheel).name}#sha256={sha256(self.wheel).hexdigest()}"

    @property
    def certificate_path(self) -> str:
        """The path of the certificate; empty if there is none."""
        return f"{DOWNLOADS}/{CERTIFICATE}" if self.settings.certificate else ""

    @property
    def install(self) -> str:
        """The sentence for visitors that are not offered the wheel."""
        return self.settings.install or INSTALL

    async def answer(self, _request: Request, values: list[str]) -> Response:
        """Serve one of the files. Raises `Refusal` for any other name."""
        [name] = values
        headers = {"cache-control": f"public, {ASK_AGAIN}", "cross-origin-resource-policy": "same-origin"}
        if self.wheel and name == Path(self.settings.wheel).name:
            return Response(self.wheel, headers=headers, media_type="application/octet-stream")
        if self.settings.certificate and name == CERTIFICATE:
            body = await asyncio.to_thread(Path(self.settings.certificate).read_bytes)
            return Response(body, headers=headers, media_type="application/x-x509-ca-cert")
        raise Refusal("NOT_FOUND", f"this server offers no file {name[:80]!r}")
