"""Names each step that a process of the server takes with Redis or a bot: the functions that are on the way, and what is sent."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, NamedTuple

from seatwise_server.store.redis import scripts

PRODUCT = "/seatwise_server/"
MESSAGE = "message"
"""The name of the last step of a failpoint that is no command."""


class Failpoint(NamedTuple):
    """A place in the program at which a process may be harmed."""

    role: str
    """lobby or referee."""
    path: tuple[str, ...]
    """The functions that are on the way, from the outermost, and the script or command that is sent."""

    def __str__(self) -> str:
        return f"{self.role}: {' > '.join(self.path)}"


def path_to(frame: Any) -> tuple[str, ...]:
    """The functions of the server that are on the way at this frame: `module.function`, from the outermost."""
    found: list[str] = []
    while frame is not None:
        _, is_ours, path = frame.f_code.co_filename.rpartition(PRODUCT)
        name = frame.f_code.co_name
        if is_ours and not path.startswith("store/redis/") and not name.startswith("<"):
            found.append(f"{path.removesuffix('.py').replace('/', '.')}.{name}")
        frame = frame.f_back
    return tuple(reversed(found))


def path_here() -> tuple[str, ...]:
    """The same of the caller; of what started its task, if the task is none of the server's functions."""
    if path := path_to(sys._getframe(1)):
        return path
    task = asyncio.tasks._current_tasks.get(asyncio.events._get_running_loop())  # type: ignore[arg-type]
    return (getattr(task, "origin", None) or ()) if task else ()


_SCRIPTS = {key: it.name for it in scripts._LUA_SCRIPTS.values() for key in (it.sha.encode(), it.source)}


READS = {
    "CLIENT", "EXISTS", "GET", "HELLO", "HEXISTS", "HGET", "HGETALL", "HLEN", "HMGET", "PING", "PTTL", "SCARD", "SCRIPT", "SMEMBERS",
    "XLEN", "XPENDING", "XRANGE", "XREAD", "XREVRANGE", "ZCARD", "ZRANGE", "ZRANK", "ZSCORE",
    *(it.name for it in scripts._LUA_SCRIPTS.values() if b"no-writes" in it.source.partition(b"\n")[0]),
}  # fmt: skip
"""Commands that change nothing: a process that is killed after one of them might as well have been killed before its next step."""


def name_of(command: list[bytes]) -> str:
    """A script's name, or the command's."""
    is_script = command[0] in (b"EVALSHA", b"EVAL")
    return _SCRIPTS[command[1]] if is_script else command[0].decode()
