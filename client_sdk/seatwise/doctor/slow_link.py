"""A proxy on loopback that lets bytes through slowly, in small pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

PIECE: Final = 64
"""Bytes at a time."""
PAUSE_S: Final = 0.002


@asynccontextmanager
async def slow_link(address: str) -> AsyncIterator[str]:
    """Forward connections to this address as long as the context lasts. Yields the address of the proxy."""
    scheme, separator, authority = address.rpartition("://")
    host, _, port = authority.rpartition(":")
    pumps: set[asyncio.Task[None]] = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        for source, target in ((reader, far_writer), (far_reader, writer)):
            pumps.add(asyncio.create_task(_pump_bytes(source, target)))

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    try:
        yield f"{scheme}{separator}127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump_bytes(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(PIECE):
            target.write(piece)
            await target.drain()
            await asyncio.sleep(PAUSE_S)
    except OSError:
        pass
    finally:
        target.transport.abort()
