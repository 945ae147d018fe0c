"""The load for a peer: one process that plays the card game of `peers/game.mjs` on Colyseus or boardgame.io, and counts.

Each seat has a WebSocket of its own, as the peers' clients have. Frames are searched, not decoded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import httptools
import picows
from load import BOTS, SEATS, Counts, Measured, Pace, measure_and_end, wait_for_matches, window_arguments

WAIT_S = 60
"""For a peer's answer, on a machine with other work."""


class Http(asyncio.Protocol):
    """One connection that is kept, for one POST at a time."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._transport: asyncio.Transport | None = None
        self._turn = asyncio.Lock()
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._answer: asyncio.Future[bytes] | None = None

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer's JSON; `ValueError` for any other status than 200."""
        request = self._request(path, json.dumps(body).encode())
        async with self._turn:
            try:
                raw = await self._answer_to(request)
            except ConnectionError:  # Node closes a connection that was idle for 5 s
                raw = await self._answer_to(request)
        answer: dict[str, Any] = json.loads(raw)
        return answer

    async def _answer_to(self, request: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        if self._transport is None:
            host, port = self._address.split(":")
            self._transport, _ = await loop.create_connection(lambda: self, host, int(port))
        self._answer = loop.create_future()
        self._transport.write(request)
        return await self._answer

    def _request(self, path: str, body: bytes) -> bytes:
        head = f"POST {path} HTTP/1.1\r\nHost: {self._address}\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def data_received(self, data: bytes) -> None:
        """As asyncio calls it."""
        self._parser.feed_data(data)

    def connection_lost(self, _: Exception | None) -> None:
        """As asyncio calls it: the next POST connects anew."""
        self._transport, self._parser = None, httptools.HttpResponseParser(self)
        if self._answer and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection"))

    def on_message_begin(self) -> None:
        """As httptools calls it."""
        self._body.clear()

    def on_body(self, data: bytes) -> None:
        """As httptools calls it."""
        self._body += data

    def on_message_complete(self) -> None:
        """As httptools calls it."""
        assert self._answer
        if self._parser.get_status_code() == 200:
            self._answer.set_result(bytes(self._body))
        else:
            self._answer.set_exception(ValueError(self._body.decode()))


class Socket(picows.WSListener):
    """The WebSocket of one seat."""

    def __init__(self, take: Callable[[Socket, bytes], None]) -> None:
        self._take = take
        self._transport: picows.WSTransport | None = None

    @classmethod
    async def open(cls, url: str, take: Callable[[Socket, bytes], None]) -> Socket:
        """Connects."""
        _, socket = await picows.ws_connect(
            lambda: cls(take), url, use_aiofastnet=False, websocket_handshake_timeout=WAIT_S
        )
        return socket  # type: ignore[return-value]

    def send(self, raw: bytes, kind: picows.WSMsgType = picows.WSMsgType.BINARY) -> None:
        """One frame; nothing if the server has closed the connection."""
        if self._transport:
            self._transport.send(kind, raw)

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        """As picows calls it."""
        self._transport = transport

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """As picows calls it."""
        if frame.msg_type == picows.WSMsgType.CLOSE:
            self._transport = None
            transport.disconnect()
        elif frame.msg_type in (picows.WSMsgType.BINARY, picows.WSMsgType.TEXT):
            self._take(self, frame.get_payload_as_bytes())


class Table(ABC):
    """Four seats that play one match after the other. Their bots agree on that, so no pairing of the peer's is used."""

    def __init__(self, address: str, bots: list[Http], pace: Pace, counts: Counts) -> None:
        self._address = address
        self._bots = bots
        self._pace, self._counts = pace, counts
        self._seats: list[Socket] = []
        self._sent_at = 0.0
        self._is_over = asyncio.Event()
        self.is_live = False

    async def play(self) -> None:
        """Without end."""
        while True:
            self._is_over.clear()
            self._sent_at = 0.0
            await self._begin()
            self.is_live = True
            await self._is_over.wait()
            self.is_live = False

    @abstractmethod
    async def _begin(self) -> None:
        """Opens a match and takes its four seats."""

    def _asked(self, submit: Callable[[], None]) -> None:
        """A seat is asked, so the last move is done."""
        if self._sent_at:
            self._counts.latencies.append(time.perf_counter() - self._sent_at)
            self._counts.done += 1
        self._pace.answer(lambda: self._submit(submit))

    def _submit(self, submit: Callable[[], None]) -> None:
        self._sent_at = time.perf_counter()
        submit()

    def _ended(self) -> None:
        self._counts.done += 1
        self._counts.matches_ended += 1
        self._is_over.set()


class ColyseusTable(Table):
    """A room. Each seat joins it by the matchmaker, and has a connection for this match alone, as Colyseus's own clients have."""

    JOIN_ROOM = b"\x0a"
    ERROR = 11
    MOVE = b"\x0d\xa4move"
    VIEW = b"\x0d\xa4view"
    ENDED = b"\x0d\xa5ended"
    LEGAL = b"\xa5legal"
    EMPTY = 0x90
    """Lists of up to 15 begin with this and their length; cards are one byte each."""

    async def _begin(self) -> None:
        self._seats = []
        room = await self._take_seat(self._bots[0], "create/table")
        for bot in self._bots[1:]:
            await self._take_seat(bot, f"joinById/{room}")

    async def _take_seat(self, bot: Http, how: str) -> str:
        answer = await bot.post(f"/matchmake/{how}", {})
        room, session = answer["room"], answer["sessionId"]
        where = f"ws://{self._address}/{room['processId']}/{room['roomId']}?sessionId={session}"
        self._seats.append(await Socket.open(where, self._take))
        return str(room["roomId"])

    def _take(self, socket: Socket, raw: bytes) -> None:
        if raw.startswith(self.VIEW):
            self._take_view(socket, raw)
        elif raw.startswith(self.JOIN_ROOM):
            socket.send(self.JOIN_ROOM)
        elif raw.startswith(self.ENDED) and socket is self._seats[0]:
            self._ended()
        elif raw[0] == self.ERROR:
            self._counts.rejections.append(repr(raw))

    def _take_view(self, socket: Socket, raw: bytes) -> None:
        at = raw.rindex(self.LEGAL) + len(self.LEGAL)
        count = raw[at] - self.EMPTY
        if count:
            card = raw[at + 1 + len(raw) % count]
            self._asked(lambda: socket.send(self.MOVE + bytes((card,))))


class BoardgameTable(Table):
    """Its matches are opened and joined over HTTP. A connection of socket.io is for one seat, and is kept for the next match."""

    OPEN, CONNECTED, PING, PONG = b"0", b"40", b"2", b"3"
    CONNECT = b"40/table,"
    SYNC, UPDATE = b'42/table,["sync",', b'42/table,["update",'
    OVER = b'"gameover":'
    LEGAL = re.compile(rb'"legal":\[([\d,]+)\]')
    STATE = re.compile(rb'"_stateID":(\d+)')

    async def _begin(self) -> None:
        while len(self._seats) < SEATS:
            await self._connect()
        created = await self._bots[0].post("/games/table/create", {"numPlayers": SEATS})
        self._match, self._synced = created["matchID"], list[tuple[Socket, bytes]]()
        self._credentials = [await self._join(seat) for seat in range(SEATS)]
        for seat, socket in enumerate(self._seats):
            what = ["sync", self._match, str(seat), self._credentials[seat], SEATS]
            self._emit(socket, what)

    async def _connect(self) -> None:
        self._is_connected = asyncio.Event()
        url = f"ws://{self._address}/socket.io/?EIO=4&transport=websocket"
        self._seats.append(await Socket.open(url, self._take))
        await self._is_connected.wait()

    async def _join(self, seat: int) -> str:
        body = {"playerID": str(seat), "playerName": f"bot-{seat}"}
        joined = await self._bots[seat].post(f"/games/table/{self._match}/join", body)
        return str(joined["playerCredentials"])

    def _emit(self, socket: Socket, what: list[Any]) -> None:
        socket.send(b"42/table," + json.dumps(what).encode(), picows.WSMsgType.TEXT)

    def _take(self, socket: Socket, raw: bytes) -> None:
        if raw.startswith(self.UPDATE):
            self._take_view(socket, raw)
        elif raw.startswith(self.SYNC):
            self._take_first(socket, raw)
        elif raw.startswith(self.CONNECTED):
            self._is_connected.set()
        elif raw.startswith(self.OPEN):
            socket.send(self.CONNECT, picows.WSMsgType.TEXT)
        elif raw == self.PING:
            socket.send(self.PONG, picows.WSMsgType.TEXT)

    def _take_first(self, socket: Socket, raw: bytes) -> None:
        """Nobody plays before all four have their first view."""
        self._synced.append((socket, raw))
        if len(self._synced) == SEATS:
            for each in self._synced:
                self._take_view(*each)

    def _take_view(self, socket: Socket, raw: bytes) -> None:
        if self.OVER in raw:
            if socket is self._seats[0]:
                self._ended()
            return
        legal, state = self.LEGAL.search(raw), self.STATE.search(raw)
        if legal and state:
            cards = legal[1].split(b",")
            card = int(cards[len(raw) % len(cards)])
            self._asked(lambda: self._play(socket, card, int(state[1])))

    def _play(self, socket: Socket, card: int, state: int) -> None:
        seat = self._seats.index(socket)
        payload = {"type": "play", "args": [card], "playerID": str(seat)}
        payload["credentials"] = self._credentials[seat]
        self._emit(
            socket, ["update", {"type": "MAKE_MOVE", "payload": payload}, state, self._match, str(seat)]
        )


TABLES: dict[str, type[Table]] = {"colyseus": ColyseusTable, "boardgame": BoardgameTable}


class PeersLoad(Measured):
    """Many tables of one peer, with the seats given out to as many bots as play against Seatwise."""

    def __init__(self, args: argparse.Namespace, group: asyncio.TaskGroup) -> None:
        super().__init__(args, group)
        bots = [Http(args.address) for _ in range(BOTS)]
        self._tables: list[Table] = []
        for number in range(args.matches):
            four = [bots[(SEATS * number + seat) % BOTS] for seat in range(SEATS)]
            self._tables.append(TABLES[args.what](args.address, four, self._pace, self._counts))

    @property
    def _matches(self) -> float:
        return sum(table.is_live for table in self._tables)

    async def start(self) -> None:
        """Returns when play has begun at nearly all tables."""
        for table in self._tables:
            self._group.create_task(table.play())
        await wait_for_matches(lambda: self._matches, self._args.matches)
        self._pace.open()


async def main(args: argparse.Namespace) -> None:
    """Plays, measures, tells."""
    async with asyncio.TaskGroup() as group:
        load = PeersLoad(args, group)
        await load.start()
        await measure_and_end(load)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, parents=[window_arguments()])
    parser.add_argument("what", choices=list(TABLES))
    parser.add_argument("address")
    asyncio.run(main(parser.parse_args()))
