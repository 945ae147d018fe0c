"""Round trips as the kernel measures them: from a segment that it sent to the acknowledgement of the peer's kernel.

The program at the other end cannot delay them: its kernel acknowledges, also while nobody reads. The least is the one to use.
The smoothed round trip is up to 40 ms longer, because kernels delay most acknowledgements. They delay none of a handshake.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

TCP_INFO_BYTES = 152
MIN_RTT = struct.Struct("=148xI")
"""`tcpi_min_rtt` of Linux 4.6 and later, in microseconds. (include/uapi/linux/tcp.h)"""
NOT_MEASURED = 0xFFFFFFFF
"""The value before the first acknowledgement."""
IS_MEASURED_HERE = sys.platform == "linux"
Found = TypeVar("Found")
DESCRIPTORS = "/proc/self/fd"
PAUSE_PER_SEARCH = 20
"""After a search this many times its length passes before the next one, so that searches take 5 % of the time at most."""


class TcpConnection(Protocol):
    """A socket, as far as its round trip is concerned."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


def read_round_trip_ms(connection: TcpConnection) -> float | None:
    """Return the least round trip of a TCP connection in ms; None if the kernel does not know it."""
    if not IS_MEASURED_HERE:
        return None
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    except OSError:
        return None
    if len(info) < TCP_INFO_BYTES:
        return None
    (min_rtt_us,) = MIN_RTT.unpack(info)
    return None if min_rtt_us == NOT_MEASURED else min_rtt_us / 1000


class PeerConnections:
    """Finds the connections of this process by their peers, for a library that does not show its sockets.

    It only reads. A descriptor may be closed and used again at any time, so its peer is compared after each reading.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._descriptors: dict[tuple[str, int], int] = {}
        """By address and port of the peer, as the last search found them."""
        self._next_search = 0.0

    def round_trip_ms(self, address: str, port: int) -> float | None:
        """Return the least round trip of the connection with this peer in ms; None if it is not known, or not yet."""
        peer = (address, port)
        known = self._descriptors.get(peer)
        if known is None or _peer_of(known) != peer:
            known = self._search_peer(peer)
        if known is None:
            return None
        round_trip_ms = _with_socket(known, read_round_trip_ms)
        return round_trip_ms if _peer_of(known) == peer else None

    def _search_peer(self, peer: tuple[str, int]) -> int | None:
        began = self._now()
        if began < self._next_search or not IS_MEASURED_HERE:
            return None
        found = ((_peer_of(int(each)), int(each)) for each in os.listdir(DESCRIPTORS))
        self._descriptors = {at: descriptor for at, descriptor in found if at is not None}
        self._next_search = self._now() + PAUSE_PER_SEARCH * (self._now() - began)
        return self._descriptors.get(peer)


def _peer_of(descriptor: int) -> tuple[str, int] | None:
    """Return address and port of the peer of a TCP connection; None for another descriptor."""
    name = _with_socket(descriptor, lambda connection: connection.getpeername())
    if not isinstance(name, tuple) or len(name) < 2:
        return None
    return str(name[0]).removeprefix("::ffff:").partition("%")[0], int(name[1])


def _with_socket(descriptor: int, use: Callable[[socket.socket], Found]) -> Found | None:
    """Use a descriptor of somebody else as a socket, and leave it open; None if it is no socket, or not connected."""
    try:
        # Addresses of both families fit into those of AF_INET6.
        borrowed = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 0, fileno=descriptor)
    except OSError:
        return None
    try:
        return use(borrowed)
    except OSError:
        return None
    finally:
        borrowed.detach()
