"""The data folder: who has it, and what lies in it."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

from seatwise_server.embedded.errors import DataFolderBusy, EmbeddedRedisError

LONGEST_SOCKET_PATH = 103
"""Bytes that a UNIX socket's path may have on every system we run on."""


def lock_folder(folder: Path) -> int:
    """The open lock file; the kernel lets go of it when we end, however we end."""
    path = folder / "lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
        os.close(lock)
        raise DataFolderBusy(
            f"Another Seatwise server (process {holder or 'unknown'}) works on the data folder {folder}. "
            "Stop that one, or give this one a data folder of its own with --data FOLDER."
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def socket_path(folder: Path) -> Path:
    """In the data folder where the path is short enough, else in a new private folder of the system's."""
    wanted = folder / "redis.sock"
    if len(os.fsencode(wanted)) <= LONGEST_SOCKET_PATH:
        return wanted
    for parent in (None, "/tmp"):
        short = Path(tempfile.mkdtemp(prefix="seatwise-", dir=parent)) / "redis.sock"
        if len(os.fsencode(short)) <= LONGEST_SOCKET_PATH:
            return short
        short.parent.rmdir()
    raise EmbeddedRedisError(
        f"There is no folder with a path short enough for a socket; {folder} is too long."
    )


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, readable by us alone."""
    fresh = path.with_suffix(path.suffix + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
