"""A raw HTTP client: bytes over one connection, so that a test sees every byte of an answer."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

SOON_S = 10.0


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One response, in full."""

    status: int
    headers: dict[str, str]
    body: bytes
    head: bytes
    """As it came."""

    @property
    def json(self) -> Any:
        """The body, unpacked if it is packed."""
        packed = self.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if packed else self.body)

    @property
    def reason(self) -> str:
        """Of the one ErrorInfo of a refusal."""
        error = self.json["error"]
        assert error["code"] == self.status
        assert set(error) == {"code", "details", "message", "status"}
        [info] = error["details"]
        assert (info["@type"], info["domain"]) == ("type.googleapis.com/google.rpc.ErrorInfo", "seatwise")
        return str(info["reason"])

    @property
    def message(self) -> str:
        """Of a refusal."""
        return str(self.json["error"]["message"])


class HttpConnection:
    """One connection to an HTTP port."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str = "") -> None:
        self.reader, self.writer = reader, writer
        self._token = token

    async def send(
        self, verb: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Sends a request. A body that is no bytes is sent as JSON."""
        said = {"host": "test", **({"authorization": f"Bearer {self._token}"} if self._token else {})}
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if body is not None:
            said |= {"content-type": "application/json", "content-length": str(len(raw))}
        lines = [
            f"{verb} {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in (said | dict(headers or {})).items()),
        ]
        await self.send_raw("\r\n".join([*lines, "", ""]).encode() + raw)

    async def send_raw(self, raw: bytes) -> None:
        """Sends any bytes."""
        self.writer.write(raw)
        await self.writer.drain()

    async def answer(self, verb: str = "GET", within_s: float = SOON_S) -> HttpAnswer:
        """The next response. IncompleteReadError if the connection ends before it."""
        async with asyncio.timeout(within_s):
            status, headers, head = await self.answer_head(within_s)
            if verb == "HEAD" or status in (204, 304):
                return HttpAnswer(status, headers, b"", head)
            if headers.get("transfer-encoding") == "chunked":
                return HttpAnswer(status, headers, b"".join([chunk async for chunk in self.chunks()]), head)
            return HttpAnswer(
                status, headers, await self.reader.readexactly(int(headers["content-length"])), head
            )

    async def answer_head(self, within_s: float = SOON_S) -> tuple[int, dict[str, str], bytes]:
        """Status and headers of the next response, and the bytes of both."""
        async with asyncio.timeout(within_s):
            head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().rstrip().split("\r\n")
        pairs = [line.split(": ", 1) for line in lines]
        return int(first.split()[1]), {name.lower(): value for name, value in pairs}, head

    async def chunks(self) -> AsyncIterator[bytes]:
        """The chunks of a body until its end."""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            chunk = await self.reader.readexactly(size + 2)
            yield chunk[:-2]
        await self.reader.readexactly(2)

    async def ends(self, within_s: float = SOON_S) -> bytes:
        """All that still comes, until the server closes the connection."""
        async with asyncio.timeout(within_s):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def call(
        self, verb: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """Sends a request and returns the response."""
        await self.send(verb, path, body, headers)
        return await self.answer(verb)

    async def get(self, path: str, **headers: str) -> HttpAnswer:
        """GET."""
        return await self.call(
            "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )


@asynccontextmanager
async def http_connection(
    address: str, token: str = "", tls: ssl.SSLContext | None = None
) -> AsyncIterator[HttpConnection]:
    """A connection to this URL, as long as this lasts."""
    where = urlsplit(address)
    assert where.hostname
    assert where.port
    reader, writer = await asyncio.open_connection(where.hostname, where.port, ssl=tls, limit=2**20)
    try:
        yield HttpConnection(reader, writer, token)
    finally:
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
