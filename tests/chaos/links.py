"""Links between a server and Redis, which a run can cut: a relay on loopback for each server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

CHUNK = 65_536
"""Bytes."""


class Link:
    """A TCP port of loopback behind which a Redis is found, as long as the link is not cut."""

    def __init__(self, socket: Path) -> None:
        self.url = ""
        """For the server whose link it is."""
        self._socket = socket
        self._is_cut = False
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listens from now on."""
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def cut(self, lasts_s: float) -> None:
        """Resets all connections, whatever is on its way in them, and every new one for so long."""
        self._is_cut = True
        self._reset()
        try:
            await asyncio.sleep(lasts_s)
        finally:
            self._is_cut = False

    def close(self) -> None:
        """For good."""
        self._is_cut = True
        self._reset()
        if self._server:
            self._server.close()

    def _reset(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if not self._is_cut:
                await self._relay_both_ways(reader, writer)
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _relay_both_ways(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(self._socket)
        except OSError:  # the Redis is away itself
            return
        self._open.add(back)
        ways = [asyncio.create_task(_pass_on(*each)) for each in ((reader, back), (there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._open.discard(back)
            back.transport.abort()
            for way in ways:
                way.cancel()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Returns when either end is closed."""
    with suppress(OSError):
        while some := await reader.read(CHUNK):
            writer.write(some)
            await writer.drain()
