"""A network in which bots are far away: two namespaces of our own, joined by a router that forwards IP packets late.

TCP runs from end to end, so both kernels see the distance. A proxy in user space would end TCP and hide it. Each address of
the server is a distance of its own. Run it below `unshare -rn`: nothing leaves the namespaces, and no right is needed.

Run as a program, this file is the router: it gets the two descriptors and the paths as JSON in its arguments.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
TUN_WITHOUT_INFO = 0x1001
LARGEST_PACKET = 65_535
IDLE_S = 0.2
TCP = 6


@dataclass(frozen=True, slots=True)
class Path:
    """The way between the bots and one address of the server."""

    one_way_s: float = 0.0
    jitter_s: float = 0.0
    """Up to so much is added to each packet, each way; no packet overtakes another."""
    late_s: float = 0.0
    """The bot's machine holds back packets of `small_bytes` or fewer for so long."""
    small_bytes: int = 0
    """Bytes in a TCP segment; 0 are acknowledgements without data."""


def address_of(number: int) -> str:
    """Returns the address of the server with this number, from 1."""
    return f"10.66.0.{number}"


def is_possible() -> bool:
    """Whether this machine allows namespaces and TUN devices."""
    if not (sys.platform == "linux" and shutil.which("unshare") and shutil.which("ip")):
        return False
    probe = ["unshare", "-rn", "ip", "tuntap", "add", "dev", "probe0", "mode", "tun"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def open_server_side(addresses: int) -> int:
    """Gives this namespace a TUN device with the server's addresses; returns its descriptor."""
    device = _open_device("far0")
    for number in range(1, addresses + 1):
        _run_ip("addr", "add", f"{address_of(number)}/32", "dev", "far0")
    _run_ip("route", "add", "10.66.1.0/24", "dev", "far0")
    return device


def enter_bots_side() -> int:
    """Moves this thread to a namespace of its own, where the bots are; returns the descriptor of its TUN device."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    device = _open_device("far1")
    _run_ip("addr", "add", "10.66.1.1/32", "dev", "far1")
    _run_ip("route", "add", "10.66.0.0/24", "dev", "far1")
    return device


def start_router(server_side: int, bots_side: int, paths: dict[int, Path]) -> subprocess.Popen[bytes]:
    """Starts the router as a process of its own; it ends with its standard input."""
    told = json.dumps({number: asdict(path) for number, path in paths.items()})
    command = [sys.executable, __file__, str(server_side), str(bots_side), told]
    return subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(server_side, bots_side))


def _open_device(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), TUN_WITHOUT_INFO))
    _run_ip("link", "set", "lo", "up")
    _run_ip("link", "set", name, "up")
    return device


def _run_ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


class Router:
    """Forwards each packet from one side to the other when its time has come."""

    def __init__(self, server_side: int, bots_side: int, paths: dict[int, Path]) -> None:
        self._server_side, self._bots_side, self._paths = server_side, bots_side, paths
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._number = 0
        self._last: defaultdict[tuple[int, int, bool], float] = defaultdict(float)
        self._chance = random.Random(1)

    def forward_packets(self) -> None:
        """Runs until its standard input ends."""
        sides = [self._server_side, self._bots_side]
        while True:
            wait_s = max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else IDLE_S
            readable, _, _ = select.select([*sides, 0], [], [], wait_s)
            if 0 in readable:
                return
            for side in readable:
                self._take_packets(side)
            now = time.monotonic()
            while self._waiting and self._waiting[0][0] <= now:
                _, _, side, packet = heapq.heappop(self._waiting)
                os.write(side, packet)

    def _take_packets(self, side: int) -> None:
        try:
            while True:
                self._take_packet(side, os.read(side, LARGEST_PACKET))
        except BlockingIOError:
            return

    def _take_packet(self, side: int, packet: bytes) -> None:
        if packet[0] >> 4 != 4 or packet[9] != TCP:
            return
        is_from_bot = side == self._bots_side
        number = packet[19] if is_from_bot else packet[15]
        path = self._paths.get(number, Path())
        is_late = is_from_bot and path.late_s > 0 and _data_bytes(packet) <= path.small_bytes
        at = time.monotonic() + path.one_way_s + self._chance.random() * path.jitter_s
        at = max(at + path.late_s * is_late, self._last[side, number, is_late])
        self._last[side, number, is_late] = at
        self._number += 1
        to = self._server_side if is_from_bot else self._bots_side
        heapq.heappush(self._waiting, (at, self._number, to, packet))


def _data_bytes(packet: bytes) -> int:
    header_bytes = (packet[0] & 15) * 4
    (total_bytes,) = struct.unpack_from("!H", packet, 2)
    return total_bytes - header_bytes - (packet[header_bytes + 12] >> 4) * 4


if __name__ == "__main__":
    _paths = {int(number): Path(**path) for number, path in json.loads(sys.argv[3]).items()}
    Router(int(sys.argv[1]), int(sys.argv[2]), _paths).forward_packets()
