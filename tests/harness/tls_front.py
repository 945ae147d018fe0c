"""A proxy that ends TLS before an HTTP port, as operators have one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from doubles.certificates import HERE, identity

CHUNK = 2**16


@dataclass(frozen=True, slots=True)
class TlsFront:
    """Where the proxy listens, and what a client needs to trust it."""

    address: str
    trust: ssl.SSLContext


@asynccontextmanager
async def tls_front_of(address: str, folder: Path) -> AsyncIterator[TlsFront]:
    """A proxy before the HTTP port at this URL, as long as this lasts. The folder gets its certificate."""
    ca = identity(is_ca=True, subject="front CA")
    behind = urlsplit(address)
    open_tasks: set[asyncio.Task[None]] = set()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        open_tasks.add(task)
        try:
            await _relay(reader, writer, str(behind.hostname), int(behind.port or 0))
        finally:
            writer.transport.abort()
            open_tasks.discard(task)

    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*identity(*HERE, signer=ca).write(folder, "front"))
    server = await asyncio.start_server(connect, "127.0.0.1", ssl=served)
    try:
        port = server.sockets[0].getsockname()[1]
        yield TlsFront(f"https://127.0.0.1:{port}", ssl.create_default_context(cadata=ca.cert_pem.decode()))
    finally:
        server.close()
        left = list(open_tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    """Passes bytes on in both directions until one side has ended."""
    inner_reader, inner_writer = await asyncio.open_connection(host, port)
    ways = [
        asyncio.create_task(_pass_on(reader, inner_writer)),
        asyncio.create_task(_pass_on(inner_reader, writer)),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        inner_writer.transport.abort()
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await source.read(CHUNK):
            sink.write(chunk)
            await sink.drain()
