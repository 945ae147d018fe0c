"""The SDK's transport over plain HTTP, against a server that does what a test says."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from seatwise.errors import BadTokenError, SeatwiseError, UnavailableError
from seatwise.link.rest_wire import RestWire
from seatwise.link.security import Security
from seatwise.v1.play_service_pb2 import PlayRequest

pytestmark = pytest.mark.asyncio(loop_scope="function")

SOON_S = 30.0
INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "seatwise", "metadata": {}}
REVOKED = {
    "error": {
        "code": 401,
        "status": "UNAUTHENTICATED",
        "message": "it is revoked",
        "details": [{**INFO, "reason": "TOKEN_REVOKED"}],
    }
}


@asynccontextmanager
async def server(answer_to_post: bytes) -> AsyncIterator[str]:
    """Its address. A GET opens a stream that says nothing more; a POST is answered with these bytes, and hung up on without any."""

    handled: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(EOFError, OSError):
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET"):
                writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{}\n\r\n")
                await reader.read()
            else:
                await reader.readexactly(len("{}"))  # a connection closed with unread bytes loses its answer
                writer.write(answer_to_post)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handled.append(asyncio.ensure_future(serve(reader, writer)))

    async with await asyncio.start_server(take, "127.0.0.1", 0) as serving:
        yield f"127.0.0.1:{serving.sockets[0].getsockname()[1]}"
    await asyncio.gather(*handled)


async def test_a_server_that_has_vanished_is_noticed_by_a_bot_that_waits() -> None:
    async with server(b"") as address, asyncio.timeout(SOON_S):
        wire = RestWire(f"rest+http://{address}", "token", Security(insecure=True))
        connection = await wire.connect()
        sock = connection._writer.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 5
        connection.close()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", UnavailableError),
        (b"HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n", UnavailableError),
        (
            b"HTTP/1.1 401 No\r\ncontent-length: %d\r\n\r\n%s"
            % (len(json.dumps(REVOKED)), json.dumps(REVOKED).encode()),
            BadTokenError,
        ),
    ],
    ids=["hung up", "refused by a proxy", "refused"],
)
async def test_a_post_that_fails_ends_the_stream_for_its_reader_too(
    answer: bytes, error: type[SeatwiseError]
) -> None:
    """The writer of a link leaves an error to the reader, which waits for a server that has nothing to say."""
    async with server(answer) as address, asyncio.timeout(SOON_S):
        wire = RestWire(f"rest+http://{address}", "token", Security(insecure=True))
        async with wire.play("") as stream:
            assert await stream.read() is not None
            reading = asyncio.ensure_future(stream.read())
            await asyncio.sleep(0)
            with pytest.raises(error):
                await stream.write(PlayRequest())
            with pytest.raises(error):
                await reading
            with pytest.raises(error):
                await stream.read()
