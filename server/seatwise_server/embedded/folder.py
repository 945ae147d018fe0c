"""The data folder: its lock, the path of its socket, its private files, and the errors for the operator that starts the server."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

LONGEST_SOCKET_PATH = 103
"""The most bytes that the path of a UNIX socket may have on every supported system."""


class EmbeddedRedisError(Exception):
    """The base of all errors of the private Redis."""


class NoServerBinary(EmbeddedRedisError):
    """No Redis or Valkey server was found."""


class DataFolderBusy(EmbeddedRedisError):
    """Another Seatwise server uses this data folder."""


class RedisKeepsDying(EmbeddedRedisError):
    """The private Redis dies repeatedly; the text ends with the last lines of its log."""


def lock_folder(folder: Path) -> int:
    """Locks the folder, and returns the descriptor of the lock file.

    The kernel releases the lock when the process ends. Raises DataFolderBusy if another server holds the lock.
    """
    path = folder / "lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
        os.close(lock)
        raise DataFolderBusy(
            f"Another Seatwise server (process {holder or 'unknown'}) uses the data folder {folder}. "
            "Stop that one, or give this one a data folder of its own with --data FOLDER."
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def socket_path(folder: Path, name: str = "redis.sock") -> Path:
    """Returns a path for the socket: in the data folder if it is short enough, else in a new temporary folder.

    Raises EmbeddedRedisError if both are too long.
    """
    wanted = folder / name
    if len(os.fsencode(wanted)) <= LONGEST_SOCKET_PATH:
        return wanted
    for parent in (None, "/tmp"):
        short = Path(tempfile.mkdtemp(prefix="seatwise-", dir=parent)) / name
        if len(os.fsencode(short)) <= LONGEST_SOCKET_PATH:
            return short
        short.parent.rmdir()
    raise EmbeddedRedisError(
        f"The path of a socket may have {LONGEST_SOCKET_PATH} bytes, and {folder} is too long, as is the temporary "
        "folder. Name a shorter one with --data FOLDER."
    )


def write_private(path: Path, text: str) -> None:
    """Writes a file completely or not at all, readable by this user alone."""
    fresh = path.with_suffix(path.suffix + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
