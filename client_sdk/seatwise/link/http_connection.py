"""A connection of HTTP/1.1 for the transport `rest_wire`: requests, and responses in one piece or in chunks."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from urllib.request import getproxies, proxy_bypass

from seatwise.errors import UnavailableError
from seatwise.link.dialing import HANDSHAKE_S
from seatwise.link.endpoint import Endpoint

KEEPALIVE_PROBES = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}
"""Seconds and counts, so that a machine that has vanished is noticed after 11 s, also by a bot that waits for its turn."""
LONGEST_HTTP_LINE = 4 * 1024 * 1024
"""Bytes. gRPC takes messages as long as this."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The head of a response."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""


class HttpConnection:
    """One connection. Every method raises `UnavailableError` when it breaks."""

    def __init__(
        self, endpoint: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._endpoint, self._reader, self._writer = endpoint, reader, writer
        _probe_when_idle(writer.get_extra_info("socket"))

    @classmethod
    async def open(cls, endpoint: Endpoint, tls: ssl.SSLContext | None) -> HttpConnection:
        """Connect, through the proxy of the environment if there is one. Raises OSError and ssl.SSLError too."""
        proxy = _proxy_to(endpoint)
        async with asyncio.timeout(HANDSHAKE_S):
            if proxy is None:
                streams = await asyncio.open_connection(
                    endpoint.host, endpoint.port, ssl=tls, limit=LONGEST_HTTP_LINE,
                    server_hostname=endpoint.host if tls else None,
                )  # fmt: skip
                return cls(endpoint, *streams)
            return await cls._open_tunnel(endpoint, tls, *proxy)

    @classmethod
    async def _open_tunnel(
        cls, endpoint: Endpoint, tls: ssl.SSLContext | None, host: str, port: int
    ) -> HttpConnection:
        connection = cls(endpoint, *await asyncio.open_connection(host, port, limit=LONGEST_HTTP_LINE))
        await connection.send("CONNECT", f"{endpoint.host}:{endpoint.port}", {})
        response = await connection.read_head()
        if response.status != 200:
            raise UnavailableError(f"the proxy {host}:{port} answers with HTTP {response.status}")
        if tls is not None:
            await connection._writer.start_tls(tls, server_hostname=endpoint.host)
        return connection

    async def send(self, verb: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a request."""
        said = {"host": self._endpoint.target, **headers}
        if body or verb == "POST":
            said |= {"content-type": "application/json", "content-length": str(len(body))}
        lines = [f"{verb} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in said.items()), "", ""]
        try:
            self._writer.write("\r\n".join(lines).encode() + body)
            await self._writer.drain()
        except (OSError, ssl.SSLError) as error:
            raise _link_lost(error) from error

    async def read_head(self) -> HttpResponse:
        """Read the head of the next response."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").rstrip().split("\r\n")
            pairs = (line.partition(":") for line in lines)
            return HttpResponse(
                int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}
            )
        except (OSError, ssl.SSLError, EOFError, ValueError, IndexError, asyncio.LimitOverrunError) as error:
            raise _link_lost(error) from error

    async def read_body(self, response: HttpResponse) -> bytes:
        """Read the whole body of a response."""
        if response.status in (204, 304):
            return b""
        if "chunked" in response.headers.get("transfer-encoding", ""):
            return await self._read_chunked_body()
        try:
            return await self._reader.readexactly(
                min(int(response.headers.get("content-length", "0")), LONGEST_HTTP_LINE)
            )
        except (OSError, ssl.SSLError, EOFError, ValueError) as error:
            raise _link_lost(error) from error

    async def _read_chunked_body(self) -> bytes:
        body = bytearray()
        async for chunk in self.chunks():
            body += chunk
            if len(body) > LONGEST_HTTP_LINE:
                raise UnavailableError("the server has sent a body that is too long")
        return bytes(body)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of a body until it ends."""
        try:
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                if size > LONGEST_HTTP_LINE:
                    raise UnavailableError("the server has sent a message that is too long")
                yield (await self._reader.readexactly(size + 2))[:-2]
                await asyncio.sleep(0)  # so that a flood of small chunks does not block the event loop
            await self._reader.readuntil(b"\r\n")
        except (OSError, ssl.SSLError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise _link_lost(error) from error

    def close(self) -> None:
        """Close the connection."""
        self._writer.transport.abort()


def _probe_when_idle(sock: socket.socket | None) -> None:
    """Let the system probe a connection that carries nothing, where it can."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, number in KEEPALIVE_PROBES.items():
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, number)


def _link_lost(error: Exception) -> UnavailableError:
    return UnavailableError(getattr(error, "strerror", None) or "the link is lost")


def _proxy_to(endpoint: Endpoint) -> tuple[str, int] | None:
    """Return host and port of the proxy of the environment, as for gRPC. A server on this machine is reached without one."""
    if endpoint.is_local or proxy_bypass(endpoint.host):
        return None
    address = getproxies().get("https" if endpoint.is_encrypted else "http", "")
    host, _, port = address.rpartition("://")[2].rpartition("@")[2].rstrip("/").rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdigit() else None
