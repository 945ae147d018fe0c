"""The transport over plain HTTP: two streams of lines, and posts. For networks that let nothing else through.

All seats of a bot are played through one URL. The server there passes everything on to lobby and referees.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Generic
from urllib.parse import urlencode

from google.protobuf import json_format

from seatwise.codec.json_values import holds_json_values, unwrap_json_values, wrap_json_values
from seatwise.errors import SeatwiseError, UnavailableError, error_class, from_json
from seatwise.link.dialing import (
    CODES_OF_HTTP,
    HANDSHAKE_S,
    explain_failure,
    link_error,
    make_context,
    proxy_to,
)
from seatwise.link.endpoint import REST_PREFIX, Endpoint, refuse_clear_text, resolve_endpoint
from seatwise.link.security import Security
from seatwise.link.wire import Received, Sent, WireStream, credentials_of
from seatwise.v1.lobby_service_pb2 import AttendRequest, AttendResponse, SeatOffer
from seatwise.v1.play_service_pb2 import PlayRequest, PlayResponse

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
        except OSError as error:
            raise _link_lost(error) from error

    async def read_head(self) -> HttpResponse:
        """Read the head of the next response."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").rstrip().split("\r\n")
            pairs = (line.partition(":") for line in lines)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            return HttpResponse(int(first.split()[1]), headers)
        except (OSError, EOFError, ValueError, IndexError, asyncio.LimitOverrunError) as error:
            raise _link_lost(error) from error

    async def read_body(self, response: HttpResponse) -> bytes:
        """Read the whole body of a response."""
        if response.status in (204, 304):
            return b""
        if "chunked" in response.headers.get("transfer-encoding", ""):
            return await self._read_chunked_body()
        try:
            length = min(int(response.headers.get("content-length", "0")), LONGEST_HTTP_LINE)
            return await self._reader.readexactly(length)
        except (OSError, EOFError, ValueError) as error:
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
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
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
    address = proxy_to(endpoint) or ""
    host, _, port = address.rpartition("://")[2].rpartition("@")[2].rstrip("/").rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdigit() else None


REST_SILENCE_S = 40.0
"""Seconds of silence after which a stream is given up. The server sends a sign of life every 15 s."""
POST_S = 10.0
"""The longest wait for the response to a post, in seconds."""


class RestWire:
    """The wire over HTTP. It sends the token in clear to another machine only if that is allowed."""

    def __init__(self, address: str, token: str, security: Security | None = None) -> None:
        self.address = address
        self._security = security or Security.resolve_options()
        insecure = self._security.insecure
        self._endpoint = resolve_endpoint(address.strip()[len(REST_PREFIX) :], insecure=insecure)
        refuse_clear_text(self._endpoint, token.strip(), insecure=insecure)
        self.headers = {
            **dict(credentials_of(token.strip())),
            "user-agent": f"seatwise-python/{version('seatwise')}",
        }
        """Those of every request."""

    def address_in(self, offer: SeatOffer) -> str:  # noqa: ARG002  # the server follows it
        return self.address

    @asynccontextmanager
    async def attend(self) -> AsyncIterator[WireStream[AttendRequest, AttendResponse]]:
        stream: RestStream[AttendRequest, AttendResponse] = RestStream(self, "/v1/attendance", AttendResponse)
        try:
            yield stream
        finally:
            stream.close()

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[WireStream[PlayRequest, PlayResponse]]:  # noqa: ARG002
        stream: RestStream[PlayRequest, PlayResponse] = RestStream(self, "/v1/play", PlayResponse)
        try:
            await stream.open()
            yield stream
        finally:
            stream.close()

    async def connect(self) -> HttpConnection:
        """Open a connection to the server. Raises `SeatwiseError`."""
        endpoint = self._endpoint
        try:
            return await HttpConnection.open(endpoint, make_context(endpoint, self._security))
        except OSError as error:  # TLS and time-outs, too
            lost = link_error(endpoint, error)
            if isinstance(lost, UnavailableError):
                lost = await asyncio.to_thread(explain_failure, endpoint, self._security, lost)
            raise lost from error


class RestStream(Generic[Sent, Received]):
    """A stream of lines from the server, and posts to it: a `WireStream`."""

    def __init__(self, wire: RestWire, path: str, response: Any) -> None:
        self._wire, self._path, self._response = wire, path, response
        self._lines: AsyncIterator[bytes] | None = None
        self._opened = asyncio.Event()
        self._failed: SeatwiseError | None = None
        self._reading: HttpConnection | None = None
        self._posting: HttpConnection | None = None

    async def open(self, query: str = "") -> None:
        """Open the stream. The lobby is told in the query what the first message says."""
        try:
            async with asyncio.timeout(REST_SILENCE_S):
                self._lines = await self._request_lines(query)
        except TimeoutError:
            self._failed = UnavailableError("the server does not answer")
            raise self._failed from None
        except SeatwiseError as error:
            self._failed = error
            raise
        finally:
            self._opened.set()

    async def _request_lines(self, query: str) -> AsyncIterator[bytes]:
        self._reading = await self._wire.connect()
        headers = {**self._wire.headers, "accept": "application/x-ndjson"}
        await self._reading.send("GET", self._path + query, headers)
        head = await self._reading.read_head()
        if head.status != 200:
            raise _refused(head, await self._reading.read_body(head))
        return _lines(self._reading)

    async def write(self, message: Sent) -> None:
        if self._lines is None:
            said: Any = message
            query = urlencode({"queues": said.queues, "maxMatches": said.max_matches}, doseq=True)
            await self.open(f"?{query}")
            return
        body = _write_body(message).encode()
        try:
            async with asyncio.timeout(POST_S):
                await self._post(body)
        except TimeoutError:
            raise self._break(UnavailableError("the server does not answer")) from None
        except SeatwiseError as error:
            raise self._break(error) from None

    def _break(self, error: SeatwiseError) -> SeatwiseError:
        """End the stream: what was posted is lost, and the reader must be told too."""
        self._failed = self._failed or error
        self.close()
        return error

    async def _post(self, body: bytes) -> None:
        if self._posting is None:
            self._posting = await self._wire.connect()
        await self._posting.send("POST", self._path, self._wire.headers, body)
        head = await self._posting.read_head()
        answer = await self._posting.read_body(head)
        if head.headers.get("connection") == "close":
            self._posting.close()
            self._posting = None
        if head.status != 204:
            raise _refused(head, answer)

    async def read(self) -> Received | None:
        await self._opened.wait()
        if self._lines is None:
            raise self._failed or UnavailableError("the stream is closed")
        try:
            async with asyncio.timeout(REST_SILENCE_S):
                line = await anext(self._lines, None)
        except TimeoutError:
            raise UnavailableError("the server is silent") from None
        except SeatwiseError as error:
            raise self._failed or error from None
        if self._failed:
            raise self._failed
        if line is None:
            return None
        if line.startswith(b'{"error":'):
            raise from_json(line)
        message: Received = _parse(line, self._response())
        return message

    def close(self) -> None:
        """Close both connections."""
        for connection in (self._reading, self._posting):
            if connection is not None:
                connection.close()


async def _lines(connection: HttpConnection) -> AsyncIterator[bytes]:
    """Yield the lines of a body, without signs of life. Raises `UnavailableError` for a line without an end."""
    left = bytearray()
    async for chunk in connection.chunks():
        left += chunk
        if b"\n" in chunk:
            *whole, left = left.split(b"\n")
            for line in filter(None, whole):
                yield bytes(line)
        elif len(left) > LONGEST_HTTP_LINE:
            raise UnavailableError("the server has sent a line that is too long")


def _write_body(message: Any) -> str:
    body: str = json_format.MessageToJson(message, indent=None)
    if holds_json_values(body.encode()):
        return json.dumps(unwrap_json_values(json.loads(body), message.DESCRIPTOR))
    return body


def _parse(line: bytes, message: Any) -> Any:
    try:
        if holds_json_values(line):
            given = wrap_json_values(json.loads(line), message.DESCRIPTOR)
            return json_format.ParseDict(given, message, ignore_unknown_fields=True)
        return json_format.Parse(line, message, ignore_unknown_fields=True)
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise UnavailableError("the server has sent a line that is no message") from error


def _refused(head: HttpResponse, body: bytes) -> SeatwiseError:
    if body.startswith(b'{"error":'):
        return from_json(body)
    code = CODES_OF_HTTP.get(head.status, "UNAVAILABLE")
    return error_class("", code)(f"the server answers with HTTP {head.status}")
