"""Raw clients over WebSocket, with an implementation that is not the server's: the same streams as in wire.py."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from google.protobuf import json_format
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from harness.items import message
from harness.wire import SOON_S, Attending, Refused, Stream, Wire
from seatwise.v1 import lobby_service_pb2, play_service_pb2

JSON, PROTO = "seatwise.v1.json", "seatwise.v1.proto"


async def open_socket(address: str, path: str, token: str, subprotocol: str = PROTO) -> ClientConnection:
    """A WebSocket with the token in its header."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return await connect(
        f"{address}{path}", additional_headers=headers, subprotocols=[subprotocol],  # type: ignore[list-item]
        compression=None, max_size=None, ping_interval=None, proxy=None, open_timeout=SOON_S,
    )  # fmt: skip


class Link:
    """A WebSocket that opens by itself, with messages as protobuf."""

    def __init__(self, address: str, path: str, token: str, subprotocol: str) -> None:
        self.is_json = subprotocol == JSON
        self._opening = asyncio.create_task(open_socket(address, path, token, subprotocol))
        self._error: dict[str, Any] | None = None

    async def send(self, raw: bytes | str) -> None:
        """One frame."""
        with contextlib.suppress(ConnectionClosed):
            await (await self._opening).send(raw)

    async def receive(self, parse: Any) -> Any:
        """The next message; `Refused` when the socket is closed."""
        socket = await self._opening
        try:
            while True:
                said = await socket.recv()
                if isinstance(said, str) and (self._error or "error" in json.loads(said)):
                    self._error = json.loads(said)["error"]
                    continue
                if isinstance(said, str):
                    return json_format.Parse(said, parse())
                return parse.FromString(said)
        except ConnectionClosed as closed:
            return self._how(closed)

    def _how(self, closed: ConnectionClosed) -> Refused:
        if self._error:
            [info] = self._error["details"]
            assert closed.rcvd is not None
            assert 4000 < closed.rcvd.code < 4017
            assert closed.rcvd.reason == info["reason"]
            assert (info["@type"], info["domain"]) == ("type.googleapis.com/google.rpc.ErrorInfo", "seatwise")
            return Refused(self._error["status"], info["reason"], self._error["message"])
        if closed.rcvd is not None and closed.rcvd.code == 1000:
            return Refused("OK", "", "")
        code = "RESOURCE_EXHAUSTED" if closed.rcvd is not None and closed.rcvd.code == 1009 else "CANCELLED"
        return Refused(code, "", str(closed))

    async def hang_up(self) -> None:
        """Closes in order, and waits until the other end has closed too."""
        await (await self._opening).close()

    async def drop(self) -> None:
        """Drops the link without a word."""
        if self._opening.done() and not self._opening.cancelled() and not self._opening.exception():
            self._opening.result().transport.abort()
        self._opening.cancel()


def use_websockets(wire: Wire, address: str, subprotocol: str) -> None:
    """From now on the streams of this wire come by WebSocket."""
    wire.link = lambda path: Link(address, path, wire.token, subprotocol)


class SocketStream(Stream):
    """A raw play stream over WebSocket."""

    def __init__(self, link: Link, *, reads: bool, pongs: bool) -> None:
        self._link = link
        self._pongs = pongs
        self._queues = defaultdict(asyncio.Queue)
        self.received = []
        self.how = None
        self._ended = asyncio.Event()
        self._reader = asyncio.create_task(self.read()) if reads else None

    async def send(self, *items: play_service_pb2.PlayRequestItem) -> None:
        if self._link.is_json:
            await self._link.send(json_format.MessageToJson(play_service_pb2.PlayRequest(items=items)))
        else:
            await self._link.send(message(items))

    async def send_raw(self, raw: bytes) -> None:
        await self._link.send(raw.decode() if self._link.is_json else raw)

    async def hang_up(self) -> None:
        await self._link.hang_up()

    async def read(self) -> None:
        try:
            while not isinstance(heard := await self._link.receive(play_service_pb2.PlayResponse), Refused):
                for found in heard.items:
                    await self._take(found)
            self._over(heard)
        except asyncio.CancelledError:
            self._over(Refused("CANCELLED", "", "by this client"))

    async def close(self) -> None:
        await self._link.drop()
        if self._reader:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)


class SocketAttending(Attending):
    """A raw attendance over WebSocket."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._start()

    async def say(self, max_matches: int, queues: Sequence[str] = ()) -> None:
        request = lobby_service_pb2.AttendRequest(queues=queues, max_matches=max_matches)
        if self._link.is_json:
            await self._link.send(json_format.MessageToJson(request))
        else:
            await self._link.send(request.SerializeToString())

    async def _read(self) -> None:
        try:
            while not isinstance(
                heard := await self._link.receive(lobby_service_pb2.AttendResponse), Refused
            ):
                await self._take(heard)
            self.how = heard
        except asyncio.CancelledError:
            self.how = Refused("CANCELLED", "", "by this client")
        async with self._news:
            self._news.notify_all()

    async def close(self) -> None:
        await self._link.drop()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
