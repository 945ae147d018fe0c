"""Raw clients over HTTP, plain or by TLS: the same streams as in wire.py, as two requests, one that is read and one that is posted."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlencode

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from harness.http import HttpAnswer, HttpConnection, http_connection
from harness.wire import Refused, Wire
from seatwise.v1 import lobby_service_pb2, play_service_pb2

ATTENDANCE, PLAY = "/v1/attendance", "/v1/play"


class HttpLink:
    """A stream over HTTP that opens by itself; that of the lobby opens with the first message."""

    is_json = False
    """It takes protobuf and sends JSON; bytes that are no protobuf are sent as they are."""

    def __init__(self, address: str, path: str, token: str, trust: ssl.SSLContext | None = None) -> None:
        self._address, self._path, self._token, self._trust = address, path, token, trust
        self._connections = AsyncExitStack()
        self._posting: HttpConnection | None = None
        self._opened: asyncio.Future[Refused | HttpConnection] = asyncio.get_running_loop().create_future()
        self._lines: asyncio.Queue[bytes | Refused] = asyncio.Queue()
        self._one_at_a_time = asyncio.Lock()
        self._reader: asyncio.Task[None] | None = None
        if path == PLAY:
            self._start("")

    def _start(self, query: str) -> None:
        self._reader = asyncio.create_task(self._read(query))

    async def _connect(self) -> HttpConnection:
        connection = http_connection(self._address, self._token, self._trust)
        return await self._connections.enter_async_context(connection)

    async def _read(self, query: str) -> None:
        try:
            self._lines.put_nowait(await self._read_all(query))
        except (OSError, EOFError) as error:
            self._lines.put_nowait(Refused("CANCELLED", "", str(error)))
        finally:
            if not self._opened.done():
                self._opened.set_result(Refused("CANCELLED", "", "not opened"))

    async def _read_all(self, query: str) -> Refused:
        http = await self._connect()
        await http.send("GET", self._path + query, headers={"accept": "application/x-ndjson"})
        status, headers, head = await http.answer_head()
        if status != 200:
            body = await http.reader.readexactly(int(headers["content-length"]))
            return _refused(HttpAnswer(status, headers, body, head))
        left = b""
        async for chunk in http.chunks():
            *whole, left = (left + chunk).split(b"\n")
            for line in filter(None, whole):
                if not self._opened.done():
                    self._opened.set_result(http)  # before the first line nothing may be posted
                if line.startswith(b'{"error":'):
                    return _refused(HttpAnswer(json.loads(line)["error"]["code"], {}, line, b""))
                self._lines.put_nowait(line)
        return Refused("OK", "", "")

    async def send(self, raw: bytes) -> None:
        """One request. If it is refused, so is the stream."""
        if self._reader is None:
            said = lobby_service_pb2.AttendRequest.FromString(raw)
            asked = {"queues": list(said.queues), "maxMatches": said.max_matches}
            self._start("?" + urlencode(asked, doseq=True))
            return
        if isinstance(await asyncio.shield(self._opened), Refused):
            return
        async with self._one_at_a_time:
            try:
                self._posting = self._posting or await self._connect()
                answer = await self._posting.call("POST", self._path, _body_of(self._path, raw))
            except (OSError, EOFError):
                return
        if answer.headers.get("connection") == "close":
            self._posting = None
        if answer.status != 204 and answer.reason != "NO_STREAM":  # its end is told on the stream
            self._lines.put_nowait(_refused(answer))

    async def receive(self, parse: Any) -> Any:
        """The next message; `Refused` when the stream has ended."""
        line = await self._lines.get()
        return line if isinstance(line, Refused) else json_format.Parse(line, parse())

    async def hang_up(self) -> None:
        """Closes it: HTTP has no other way to end."""
        await self.drop()
        self._lines.put_nowait(Refused("OK", "", ""))

    async def drop(self) -> None:
        """Drops the link without a word."""
        if self._reader:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        await self._connections.aclose()


def _refused(answer: HttpAnswer) -> Refused:
    return Refused(answer.json["error"]["status"], answer.reason, answer.message)


def _body_of(path: str, raw: bytes) -> bytes:
    kind = play_service_pb2.PlayRequest if path == PLAY else lobby_service_pb2.AttendRequest
    try:
        return json_format.MessageToJson(kind.FromString(raw), indent=None).encode()
    except DecodeError:
        return raw


def use_http(wire: Wire, address: str, trust: ssl.SSLContext | None = None) -> None:
    """From now on the streams of this wire come by HTTP, and by TLS to a URL that says so."""
    paths = {"/v1/attend": ATTENDANCE, "/v1/play": PLAY}
    wire.link = lambda path: HttpLink(address, paths[path], wire.token, trust)
