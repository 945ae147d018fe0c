"""A TCP proxy that is as bad as a network can be: slow, stalled, half open, or cut after so many bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

CHUNK = 65_536


@dataclass(slots=True)
class Proxy:
    """What it does may be changed at any time; it holds for all its connections."""

    delay_s: float = 0.0
    """On each way; the order is kept."""

    is_half_open: bool = False
    """What the server says is lost, what the client says arrives."""

    cut_after: int | None = None
    """So many bytes more from the server, and the connection is cut."""

    address: str = ""
    _target: tuple[str, int] = ("", 0)
    _going: asyncio.Event = field(default_factory=asyncio.Event)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def stall(self) -> None:
        """From now on all is taken and nothing passed on."""
        self._going.clear()

    def go_on(self) -> None:
        """What was held arrives."""
        self._going.set()

    def cut(self) -> None:
        """All connections break, now."""
        for writer in self._writers:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, server_writer}
        for source, sink, is_server in ((reader, server_writer, False), (server_reader, writer, True)):
            task = asyncio.create_task(self._pass_on(source, sink, is_server=is_server))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_server: bool
    ) -> None:
        held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        writing = asyncio.create_task(self._write(held, sink, is_server=is_server))
        try:
            with suppress(OSError):
                while chunk := await source.read(CHUNK):
                    held.put_nowait((asyncio.get_running_loop().time() + self.delay_s, chunk))
            held.put_nowait((asyncio.get_running_loop().time() + self.delay_s, b""))
            await writing
        finally:
            writing.cancel()
            sink.transport.abort()
            self._writers.discard(sink)

    async def _write(
        self, held: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter, *, is_server: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due_s, chunk = await held.get()
            await asyncio.sleep(due_s - loop.time())
            await self._going.wait()
            if not chunk:
                return
            if not (is_server and self.is_half_open):
                sink.write(self._allowed(chunk) if is_server else chunk)
            if is_server and self.cut_after == 0:
                self.cut_after = None
                self.cut()

    def _allowed(self, chunk: bytes) -> bytes:
        if self.cut_after is not None:
            chunk = chunk[: self.cut_after]
            self.cut_after -= len(chunk)
        return chunk


@asynccontextmanager
async def proxy_to(address: str, delay_s: float = 0.0) -> AsyncIterator[Proxy]:
    """A proxy before that server, as long as this lasts."""
    host, _, port = address.rpartition(":")
    proxy = Proxy(delay_s, _target=(host, int(port)))
    proxy.go_on()
    server = await asyncio.start_server(proxy._connect, "127.0.0.1")
    proxy.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        tasks = list(proxy._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
