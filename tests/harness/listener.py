"""Somebody between a client and its server, who writes down what the client says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Listener:
    """Somebody on the way, who reads all and passes it on."""

    def __init__(self, target: str) -> None:
        self._port = int(target.rpartition(":")[2])
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.heard = bytearray()
        self.port = 0

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[asyncio.create_task(self._pass_on(reader, writer))] = writer

    async def close(self) -> None:
        """Leaves nothing open, not even what was accepted a moment ago."""
        for _ in range(3):
            await asyncio.sleep(0)
            for writer in self._connections.values():
                writer.transport.abort()
            if self._connections:
                await asyncio.wait(self._connections)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(self._copy(reader, forth, self.heard), self._copy(back, writer, bytearray()))
        for each in (writer, forth):
            with suppress(OSError):
                await each.wait_closed()

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, heard: bytearray) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                heard += data
                sink.write(data)
        sink.close()


@asynccontextmanager
async def listening(target: str) -> AsyncIterator[Listener]:
    listener = Listener(target)
    server = await asyncio.start_server(listener.connected, "127.0.0.1", 0)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()
        await listener.close()
