"""Limits the memory of this process: floods of calls make gRPC take memory, and the process may not get it back.

The watch first returns memory that is not in use to the system. If the process is above its limit all the same, it stops in
order, and its supervisor starts it again. Its matches continue at other referees, or here after the start.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from pathlib import Path

import structlog

from seatwise.child_process import resident_bytes

MEMORY_SHARE = 0.6
"""The default limit, as a share of the memory that the process could have: the rest is for Redis and for what comes between
two checks."""
RELEASE_SHARE = 0.5
"""Above this share of the limit the process returns memory that it does not use."""
OWN_MEMORY_CHECK_S = 0.5
RELEASE_REST_S = 30.0
"""The shortest time between two releases below the limit: each stops the event loop for some tens of milliseconds."""
LEAST_MEMORY = 128 * 2**20
"""The smallest limit, in bytes: a server without any match takes half of it."""
START_AGAIN = 75
"""The exit code of a server that has stopped only to be started again: EX_TEMPFAIL of sysexits.h."""
BYTES_PER_PAGE = os.sysconf("SC_PAGE_SIZE")

log = structlog.get_logger()


class MemoryLimitPassed(Exception):
    """The process has more memory than it may have; it must be started again."""


class MemoryWatch:
    """Compares the memory of this process with its limit."""

    def __init__(self, limit: int) -> None:
        """`limit` is in bytes, 0 for none."""
        self.limit = limit
        self._released_at = -RELEASE_REST_S

    async def watch_memory(self) -> None:
        """Check again and again, until cancelled. Raises `MemoryLimitPassed`."""
        while self.limit:
            await asyncio.sleep(OWN_MEMORY_CHECK_S)
            await self.check_memory(asyncio.get_running_loop().time())

    async def check_memory(self, now: float) -> None:
        """Check once; `now` is the time of the loop, in seconds. Raises `MemoryLimitPassed`."""
        taken = resident_bytes()
        is_above = taken > self.limit
        if is_above or (taken > RELEASE_SHARE * self.limit and now - self._released_at >= RELEASE_REST_S):
            self._released_at = now
            await asyncio.to_thread(release_memory)
        if is_above and resident_bytes() > self.limit:
            taken_mib, limit_mib = taken // 2**20, self.limit // 2**20
            log.warning("memory_limit_exceeded", taken_mib=taken_mib, limit_mib=limit_mib)
            why = f"the process has taken {taken_mib} MiB of memory, and its limit is {limit_mib} MiB (--max-memory)"
            raise MemoryLimitPassed(why)


def release_memory() -> None:
    """Collect what nothing refers to, and return free memory to the system where the C library can do that."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


def default_limit(root: Path = Path("/")) -> int:
    """Return the limit of a process for which none is named, in bytes; `root` is the root of the file system.

    It is a share of what the control group of the process may have, or of the memory of the machine.
    """
    machine = os.sysconf("SC_PHYS_PAGES") * BYTES_PER_PAGE
    return max(LEAST_MEMORY, int(MEMORY_SHARE * min([machine, *_group_limits(root)])))


def _group_limits(root: Path) -> list[int]:
    """Return the limits of the control group and of those above it, for either version of control groups."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    limits = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            limits += _limits_above(root / "sys/fs/cgroup", path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits_above(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
    return limits


def _limits_above(base: Path, path: str, name: str) -> list[int]:
    """Inside a container the path may be that outside of it; then the limit stands at the base."""
    folder = base / path.strip("/")
    folders = [each for each in (folder, *folder.parents) if each == base or base in each.parents]
    return [limit for each in folders if (limit := _read_limit(each / name))]


def _read_limit(file: Path) -> int:
    """Return a limit; 0 if there is none."""
    try:
        text = file.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0
