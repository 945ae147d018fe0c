"""The WebSocket port against peers that mean it harm: they are hung up on, and nobody who plays notices."""

from __future__ import annotations

import asyncio
import os
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from socket import SHUT_WR
from typing import Any

import pytest
from harness import House, bystanders, item, message, plays_on, until
from harness.websocket import JSON, PROTO, open_socket

from seatwise.v1 import play_service_pb2
from seatwise_server.limits import SOCKETS, Places
from seatwise_server.play.inbound import ITEMS_PER_TURN
from seatwise_server.play.play_stream import PlayStream
from seatwise_server.ws import websocket_server
from seatwise_server.ws.websocket_server import (
    BAD_TOKENS_S,
    MOST_BAD_TOKENS,
    BadTokens,
    WebSocketServer,
    new_socket_places,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
PONG_ITEM = message([item("", 0, pong=play_service_pb2.Pong(number=7))])


class Raw:
    """A connection of bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def write(self, raw: bytes) -> None:
        self.writer.write(raw)

    async def rest(self, within_s: float = 5) -> bytes:
        """What comes until the server hangs up, which it must."""
        try:
            async with asyncio.timeout(within_s):
                return await self.reader.read()
        except ConnectionResetError:
            return b""

    async def closed(self) -> int:
        """The close code with which the server ends the socket; 0 if it says none."""
        return next(
            (
                struct.unpack("!H", body[:2])[0]
                for kind, body in frames_in(await self.rest())
                if kind == CLOSE
            ),
            0,
        )


def frames_in(data: bytes) -> list[tuple[int, bytes]]:
    """The frames of a server."""
    found = []
    while len(data) >= 2:
        kind, length, at = data[0] & 15, data[1], 2
        if length == 126:
            length, at = struct.unpack("!H", data[2:4])[0], 4
        elif length == 127:
            length, at = struct.unpack("!Q", data[2:10])[0], 10
        found.append((kind, data[at : at + length]))
        data = data[at + length :]
    return found


def frame(
    kind: int,
    body: bytes = b"",
    *,
    fin: bool = True,
    masked: bool = True,
    bits: int = 0,
    length: int | None = None,
) -> bytes:
    """A frame of a client; masked with noughts, which change nothing."""
    size = len(body) if length is None else length
    head = bytes([(fin << 7) | bits | kind])
    mask = bytes(4) if masked else b""
    if size < 126:
        return head + bytes([(masked << 7) | size]) + mask + body
    if size < 2**16:
        return head + bytes([(masked << 7) | 126]) + struct.pack("!H", size) + mask + body
    return head + bytes([(masked << 7) | 127]) + struct.pack("!Q", size) + mask + body


@asynccontextmanager
async def connected(house: House) -> AsyncIterator[Raw]:
    """A connection to the port."""
    host, _, port = house.server.ws_address.removeprefix("ws://").rpartition(":")
    raw = Raw(*await asyncio.open_connection(host, int(port)))
    try:
        yield raw
    finally:
        raw.writer.transport.abort()


@asynccontextmanager
async def upgraded(house: House, token: str = "", subprotocol: str = PROTO) -> AsyncIterator[Raw]:
    """A WebSocket, by hand."""
    async with connected(house) as raw:
        raw.write(
            request(house, *([f"Authorization: Bearer {token}"] if token else []), subprotocol=subprotocol)
        )
        assert (await raw.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        yield raw


def request(house: House, *headers: str, subprotocol: str = PROTO, path: str = "/v1/play") -> bytes:
    lines = [
        f"GET {path} HTTP/1.1", f"Host: {house.server.ws_address.removeprefix('ws://')}", "Upgrade: websocket",
        "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        f"Sec-WebSocket-Protocol: {subprotocol}", *headers,
    ]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode()


# Before the upgrade


async def test_a_request_that_dawdles_is_hung_up_on(house: House, monkeypatch: pytest.MonkeyPatch):
    assert websocket_server.UPGRADE_S == 10.0
    monkeypatch.setattr(websocket_server, "UPGRADE_S", 0.5)
    async with bystanders(house), connected(house) as silent, connected(house) as slow:
        began = time.monotonic()
        for byte in request(house):
            slow.write(bytes([byte]))
            await asyncio.sleep(0.01)
            if slow.reader.at_eof():
                break
        assert await slow.rest() == b""
        assert await silent.rest() == b""
        assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 200_000,
        b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % number for number in range(1000)) + b"\r\n",
        b"GET /v1/play HTTP/1.0\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"POST /v1/play HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        b"GET /v1/play HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /v1/play HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: \xff\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\r\n\r\n",
        bytes(range(256)) * 4096,
    ],
    ids=["long head", "many headers", "http1.0", "no target", "post", "chunked", "no upgrade", "bytes", "http2", "nothing", "noise"],
)  # fmt: skip
async def test_a_request_that_is_no_upgrade_is_hung_up_on(house: House, words: bytes):
    async with bystanders(house), connected(house) as raw:
        raw.write(words)
        answer = await raw.rest()
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
        assert b"Traceback" not in answer


async def test_a_tls_hello_at_a_plain_port_keeps_nobody_out(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(websocket_server, "UPGRADE_S", 0.3)
    async with bystanders(house), connected(house) as raw:
        raw.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(200))
        assert await raw.rest() == b""


async def test_a_thousand_connections_that_say_nothing_keep_nobody_out(house: House):
    host, _, port = house.server.ws_address.removeprefix("ws://").rpartition(":")
    house.subprotocol = PROTO
    silent = [await asyncio.open_connection(host, int(port)) for _ in range(1000)]
    try:
        async with house.table(2) as table:
            await table.sit()
            await plays_on(house, table)
    finally:
        house.subprotocol = ""
        for _, writer in silent:
            writer.transport.abort()


async def test_one_address_gets_half_of_the_connections_and_all_together_no_more_than_there_are():
    quota = new_socket_places(4)
    with quota.hold_place("192.0.2.1"), quota.hold_place("192.0.2.1"):
        assert quota.find_refusal("192.0.2.1")
        with quota.hold_place("192.0.2.2"):
            assert not quota.find_refusal("192.0.2.2")
            with quota.hold_place("192.0.2.3"):
                assert quota.find_refusal("192.0.2.4")
        assert not quota.find_refusal("192.0.2.2")
        assert quota.find_refusal("192.0.2.1")
    assert not quota.find_refusal("192.0.2.1")
    assert len(quota) == 0


async def test_one_address_gets_so_many_connections_and_a_proxy_half_of_all():
    quota = new_socket_places(4 * SOCKETS.most_of_address, ["10.0.0.0/8"])
    with ExitStack() as held:
        for address in ("192.0.2.1", "10.0.0.1"):
            for _ in range(SOCKETS.most_of_address):
                assert not quota.find_refusal(address)
                held.enter_context(quota.hold_place(address))
        assert quota.find_refusal("192.0.2.1")
        assert not quota.find_refusal("192.0.2.2")
        assert not quota.find_refusal("10.0.0.1")


async def test_an_address_with_many_bad_tokens_is_hung_up_on_for_a_minute_and_a_proxy_is_not():
    now = 0.0
    places, bad_tokens = new_socket_places(100, ["10.0.0.0/8"]), BadTokens(lambda: now)

    def has_room(address: str) -> bool:
        return places.find_refusal(address, is_suspect=bad_tokens.has_guessed(address)) is None

    for address in ("192.0.2.1", "10.0.0.1"):
        for _ in range(MOST_BAD_TOKENS):
            assert has_room(address)
            bad_tokens.note_bad_token(address)
    assert not has_room("192.0.2.1")
    assert has_room("10.0.0.1")
    assert has_room("192.0.2.2")
    now = BAD_TOKENS_S
    assert has_room("192.0.2.1")


async def test_bad_tokens_are_counted_and_good_ones_are_not(house: House):
    bad = server_of(house)._bad_tokens._counted
    before = bad["127.0.0.1"]
    bot = await house.bot()
    for token in ("no token", bot.token, "no other"):
        async with upgraded(house, token) as raw:
            if token != bot.token:
                assert await raw.closed() == 4016
    await until(lambda: bad["127.0.0.1"] == before + 2)
    async with upgraded(house, bot.token):
        await until(lambda: bot.bot in house.server.referee.streams)
    assert bad["127.0.0.1"] == before + 2


async def test_connections_above_the_quota_are_hung_up_on_and_their_places_come_back(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    await until(lambda: len(places_of(house)) == 0)
    monkeypatch.setattr(SOCKETS, "most_of_address", 3)
    bot = await house.bot()
    held = [await open_socket(house.server.ws_address, "/v1/play", bot.token) for _ in range(2)]
    async with connected(house), connected(house) as one_too_many:
        assert await one_too_many.rest() == b""
    for each in held:
        each.transport.abort()
    await until(lambda: len(places_of(house)) == 0)
    async with upgraded(house, bot.token):
        pass


def server_of(house: House) -> WebSocketServer:
    """That of the server's port."""
    server = house.server.websockets
    assert server is not None
    return server


def places_of(house: House) -> Places:
    """Those of the server's port."""
    return server_of(house)._places


# Frames


BROKEN = {
    "not masked": (frame(BINARY, b"x", masked=False), 1002),
    "packed": (frame(BINARY, b"x", bits=0x40), 1002),
    "reserved bit": (frame(BINARY, b"x", bits=0x20), 1002),
    "reserved opcode": (frame(3, b"x"), 1002),
    "control in parts": (frame(PING, b"x", fin=False), 1002),
    "long control": (frame(PING, b"x" * 126), 1002),
    "part of nothing": (frame(CONTINUATION, b"x"), 1002),
    "message in a message": (frame(BINARY, b"x", fin=False) + frame(BINARY, b"x"), 1002),
    "giant": (frame(BINARY, b"", length=2**62), 1009),
    "negative": (frame(BINARY, b"", length=2**63), 1002),
    "too large": (frame(BINARY, b"", length=256 * 1024 + 1), 1009),
    "parts without end": (frame(BINARY, bytes(9000), fin=False) + frame(CONTINUATION, bytes(9000), fin=False) * 40, 1009),
    "other frames": (frame(TEXT, b"{}"), 1003),
    "close of one byte": (frame(CLOSE, b"x"), 1002),
    "close of a bad code": (frame(CLOSE, b"\x00\x01"), 1002),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "code"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_frame_closes_its_socket_with_a_code(house: House, raw: bytes, code: int):
    bot = await house.bot()
    async with bystanders(house), upgraded(house, bot.token) as socket:
        await until(lambda: house.server.referee.streams.get_stream(bot.bot))
        socket.write(raw)
        assert await socket.closed() == code
        await until(lambda: bot.bot not in house.server.referee.streams)


async def test_parts_of_nothing_fill_no_memory(house: House):
    bot = await house.bot()
    async with bystanders(house), upgraded(house, bot.token) as socket:
        socket.write(frame(BINARY, b"", fin=False) + frame(CONTINUATION, b"", fin=False) * 20_000)
        socket.write(frame(CONTINUATION, PONG_ITEM) + frame(PING, b"still here"))
        async with asyncio.timeout(5):
            await socket.reader.readuntil(b"still here")


async def test_a_message_in_parts_with_pings_between_them_is_whole(house: House):
    bot = await house.bot()
    whole = message([item("matches/none", 0, resign=play_service_pb2.Resign())])
    async with upgraded(house, bot.token) as socket:
        socket.write(frame(BINARY, whole[:5], fin=False) + frame(PING, b"between"))
        socket.write(frame(CONTINUATION, whole[5:]))
        async with asyncio.timeout(5):
            await socket.reader.readuntil(b"between")
            assert b"matches/none" in await socket.reader.readuntil(b"matches/none")


# Floods


async def test_a_flood_of_pings_that_nobody_reads_is_not_answered_for_ever(house: House):
    """Pongs that pile up would fill the memory."""
    bot = await house.bot()
    async with bystanders(house), upgraded(house, bot.token) as raw:
        socket = next(iter(house.server.websockets._sockets))
        raw.reader._limit = 0  # which stops to read at once
        raw.writer.transport.pause_reading()
        flood = frame(PING, bytes(100)) * 100
        async with asyncio.timeout(20):
            while not socket.is_blocked:
                raw.write(flood)
                await asyncio.sleep(0)
        before = socket._transport.underlying_transport.get_write_buffer_size()
        raw.write(flood * 50)
        await asyncio.sleep(0.3)
        assert socket._transport.underlying_transport.get_write_buffer_size() == before < 300_000


async def test_the_items_of_many_small_messages_are_taken_a_few_at_a_time(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    """All that one read brings is parsed in one turn; its items must not be handled in it too."""
    taken: Counter[int] = Counter()
    turn = 0

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    clean = PlayStream.on_pong
    monkeypatch.setattr(PlayStream, "on_pong", lambda *args: (taken.update([turn]), clean(*args)))
    turns = asyncio.create_task(count_turns())
    bot = await house.bot()
    many = 3000
    async with bystanders(house), upgraded(house, bot.token) as raw:
        raw.write(frame(BINARY, PONG_ITEM) * many)
        await until(lambda: taken.total() >= many)
    turns.cancel()
    assert max(taken.values()) <= ITEMS_PER_TURN + 8  # those of bystanders too


async def test_a_socket_whose_owner_is_not_known_is_read_no_further_than_its_first_messages(house: House):
    async with upgraded(house, subprotocol=JSON) as raw:
        socket = next(iter(house.server.websockets._sockets))
        raw.write(frame(TEXT, b'{"items": []}') * 5)
        assert await raw.closed() == 4016
        assert len(socket._queue) <= 5


# Links that are gone


async def test_nothing_is_written_to_a_link_that_is_about_to_be_gone(
    house: House, caplog: pytest.LogCaptureFixture
):
    """asyncio logs a line for each such write from the fifth on."""
    bot = await house.bot()
    async with upgraded(house, bot.token):
        await until(lambda: bot.bot in house.server.referee.streams)
        socket = next(iter(house.server.websockets._sockets))
        assert socket._transport is not None
        socket._transport.underlying_transport.get_extra_info("socket").shutdown(SHUT_WR)
        for _ in range(20):
            socket.send(b"late")
        await until(lambda: bot.bot not in house.server.referee.streams)
    assert not [line for line in caplog.records if line.name == "asyncio"]


async def test_a_peer_that_answers_no_ping_is_hung_up_on(house: House, monkeypatch: pytest.MonkeyPatch):
    for name, seconds in (("IDLE_S", 0.2), ("LOST_S", 0.5)):
        monkeypatch.setattr(websocket_server, name, seconds)
    bot, other = await house.bot(), await house.bot()
    async with upgraded(house, bot.token) as raw, upgraded(house, other.token) as alive:
        gone = next(each for each in house.server.websockets._sockets)
        answering = asyncio.create_task(answer_pings(alive))
        async with asyncio.timeout(5):
            while not gone.is_closed:
                for each in list(house.server.websockets._sockets):
                    websocket_server._check_peer(each, asyncio.get_running_loop().time())
                await asyncio.sleep(0.05)
        assert PING in [kind for kind, _ in frames_in(await raw.rest())]
        await until(lambda: bot.bot not in house.server.referee.streams)
        assert other.bot in house.server.referee.streams
        answering.cancel()


async def answer_pings(raw: Raw) -> None:
    while True:
        await raw.reader.read(1)
        raw.write(frame(PONG))


async def test_a_link_that_breaks_is_noticed_at_once(house: House):
    bot = await house.bot()
    async with upgraded(house, bot.token) as raw:
        await until(lambda: bot.bot in house.server.referee.streams)
        raw.writer.transport.abort()
        await until(lambda: bot.bot not in house.server.referee.streams, within_s=1)


async def test_nothing_is_left_of_sockets_that_are_gone(house: House):
    """Neither an entry of a list nor a task."""
    await house.drop_all()
    await until(lambda: len(places_of(house)) == 0)
    server: Any = house.server.websockets
    assert not server._sockets
    assert not server._connections._tasks
