"""Limits the connections of clients: without a free file descriptor the server could neither reach Redis nor read
a file. And watches whether bots can connect: a bot that cannot loses nothing by it.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Awaitable, Callable, Sequence

import structlog

WANTED = 65_536
"""The number of open files and connections that this process wants to be allowed."""
OWN_DESCRIPTORS = 1_024
"""The number of these that are reserved for the server itself: Redis, files, child processes."""

ROOM_BEAT_S = 0.25
"""The time between two looks whether bots can connect."""
PORT_REFUSES_S = 0.2
"""A port that is full hangs up by then."""

log = structlog.get_logger()


def connections_for_others() -> int:
    """Raise the limit of open files as far as the system allows, and return how many connections clients may hold."""
    most = _raise_limit()
    return most - min(OWN_DESCRIPTORS, most // 2)


def _raise_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= WANTED:
        return max(soft, WANTED)
    most = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (ValueError, OSError):  # the system has another, lower limit
        return soft
    return most


class ConnectionRoom:
    """Watches whether a port has a connection left for the next caller."""

    def __init__(
        self, port: str, lacks_room: Callable[[], Awaitable[bool]], on_shortage: Callable[[int], None]
    ) -> None:
        """`port` is its name in the log and the metrics. `on_shortage` is told of each span without room, in ms."""
        self._port = port
        self._lacks_room = lacks_room
        self._on_shortage = on_shortage
        self.is_short = False

    async def watch_room(self) -> None:
        """Look again and again. Runs until cancelled."""
        loop, began_s = asyncio.get_running_loop(), 0.0
        while True:
            looked_s = loop.time()
            is_short = await self._lacks_room()
            if is_short and not self.is_short:
                began_s = looked_s
                hint = "raise the limit of open files, or limit each address in the front door"
                log.warning("connections_used_up", port=self._port, hint=hint)
            elif self.is_short and not is_short:
                after_s = round(loop.time() - began_s, 1)
                log.warning("connections_free_again", port=self._port, after_s=after_s)
            self.is_short = is_short
            await asyncio.sleep(ROOM_BEAT_S)
            if is_short:
                self._on_shortage(int((loop.time() - looked_s) * 1000))


def free_descriptor() -> int | None:
    """Return the number of the next descriptor, which is the lowest that is free. `None` if there is none: that is the fault of this
    process itself, because connections from outside are limited well below it.
    """
    try:
        descriptor = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return None
    os.close(descriptor)
    return descriptor


async def lack_room(most: int, ports: Sequence[tuple[str, int]]) -> bool:
    """Whether one of the ports takes no connection; the smallest of them has `most`.

    Only a high number of the next descriptor makes a look at the ports worth it.
    """
    descriptor = free_descriptor()
    if descriptor is None or descriptor < most * 3 // 4:
        return descriptor is None
    return any(await asyncio.gather(*(_is_full(host, port) for host, port in ports)))


async def _is_full(host: str, port: int) -> bool:
    """Whether the port takes no connection, or hangs up on it at once."""
    try:
        async with asyncio.timeout(PORT_REFUSES_S):
            reader, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return True
    try:
        async with asyncio.timeout(PORT_REFUSES_S):
            return await reader.read(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True
    finally:
        writer.transport.abort()
