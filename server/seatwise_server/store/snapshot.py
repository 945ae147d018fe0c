"""A snapshot of all data: copied from a Redis that works, as a replica gets it, and loaded into an empty one."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import redis
from redis.exceptions import RedisError

from seatwise.errors import UsageError
from seatwise_server.embedded import EmbeddedRedis, EmbeddedRedisError

SNAPSHOT: Final = "dump.rdb"
READ_BYTES: Final = 2**18
SNAPSHOT_S: Final = 600.0
"""The longest wait for the next bytes of a snapshot: a large Redis needs minutes to write it to its disk first."""
LOAD_S: Final = 3600.0
KEYS_AT_ONCE: Final = 500


@contextmanager
def _explaining(doing: str) -> Iterator[None]:
    """Raise `UsageError` for every fault of a Redis, or of the disk."""
    try:
        yield
    except (RedisError, EmbeddedRedisError, OSError) as error:
        raise UsageError(f"the {doing} failed: {error}") from None


class OpenRedis:
    """A Redis that works, or an empty one."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    @classmethod
    def of_file(cls, file: Path) -> OpenRedis:
        """Return the one whose URL is in the file. Raises `UsageError`."""
        try:
            return cls(redis.Redis.from_url(file.read_text().strip(), socket_timeout=SNAPSHOT_S))
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}") from None
        except ValueError:
            raise UsageError(
                f"{file}: a backup and a restore take redis://, rediss:// or unix://: name the primary behind sentinels, and each primary "
                "of a cluster"
            ) from None

    @classmethod
    def of_folder(cls, data: Path) -> OpenRedis:
        """Return the embedded one of a data folder. Raises `UsageError`."""
        try:
            written = (data / "redis" / "redis.conf").read_text()
        except OSError:
            written = ""
        found = re.search(r'^unixsocket "(.*)"$', written, re.MULTILINE)
        if found is None:
            raise UsageError(
                f"{data} is no data folder of a server with an embedded Redis; name it with --data"
            )
        path = found[1].replace('\\"', '"').replace("\\\\", "\\")
        return cls(redis.Redis(unix_socket_path=path, socket_timeout=SNAPSHOT_S))

    @property
    def version(self) -> str:
        """Its version. Raises `UsageError`."""
        with _explaining("backup"):
            info: Any = self._client.info()
        return str(info.get("valkey_version") or info["redis_version"])

    def copy_snapshot(self, path: Path) -> int:
        """Write a snapshot of one moment to the file, and return its size in bytes. Raises `UsageError`."""
        draft = path.with_name(f".{path.name}")
        try:
            with _explaining("backup"):
                size = _copy_snapshot(self._client, draft)
                draft.rename(path)
                return size
        finally:
            draft.unlink(missing_ok=True)

    def load_snapshot(self, snapshot: Path, data: Path) -> int:
        """Copy a snapshot into this Redis, by way of an embedded one, and return how many keys it has.

        Raises `UsageError`, also if this Redis is not empty. The embedded one has a new folder within `data`, which is removed.
        """
        with _explaining("restore"):
            if self._client.dbsize():
                raise UsageError("this Redis is not empty: a restore replaces nothing")
            data.mkdir(mode=0o700, parents=True, exist_ok=True)
            with TemporaryDirectory(prefix="restore-", dir=data, ignore_cleanup_errors=True) as scratch:
                keys = load_embedded(snapshot, Path(scratch))
                with EmbeddedRedis(Path(scratch)) as source:
                    _copy_all_keys(redis.Redis.from_url(source.url), self._client)
            return keys


def _copy_snapshot(client: redis.Redis, path: Path) -> int:
    """Write a snapshot of one moment to the file, and return its size in bytes. Raises `RedisError` and OSError."""
    connection: Any = client.connection_pool.get_connection()
    try:
        connection.send_command("REPLCONF", "rdb-only", "1")
        connection.read_response()
        connection.send_command("SYNC")
        socket = connection._sock
        head = bytearray()
        while not head.endswith(b"\r\n"):
            byte = socket.recv(1)
            if not byte:
                raise OSError("the Redis ended the connection")
            head += byte if head or byte != b"\n" else b""  # line feeds say that it still works
        if not head.startswith(b"$") or not head[1:-2].isdigit():
            raise OSError(head.decode(errors="replace").strip())
        left = size = int(head[1:-2])
        with path.open("wb") as file:
            while left:
                block = socket.recv(min(left, READ_BYTES))
                if not block:
                    raise OSError("the Redis ended the connection in the middle of the snapshot")
                left -= file.write(block)
            file.flush()
            os.fsync(file.fileno())
        return size
    finally:
        connection.disconnect()


class _RestoredRedis(EmbeddedRedis):
    """An embedded Redis that reads a snapshot at its start, which one with a log does not."""

    def _write_configuration(self) -> str:
        return super()._write_configuration().replace("appendonly yes", "appendonly no")


def load_embedded(snapshot: Path, into: Path) -> int:
    """Make the folder of an embedded Redis of a snapshot, and return how many keys it has. Raises `UsageError`."""
    if into.exists() and any(into.iterdir()):
        raise UsageError(f"{into} is not empty: a restore replaces nothing; name another folder with --data")
    into.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copy(snapshot, into / SNAPSHOT)
    with _explaining("restore"), _RestoredRedis(into) as restored:
        client = redis.Redis.from_url(restored.url, socket_timeout=SNAPSHOT_S)
        keys: Any = client.dbsize()
        client.config_set("appendonly", "yes")
        deadline = time.monotonic() + LOAD_S
        info: Any = client.info("persistence")
        while info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"]:
            if time.monotonic() > deadline:
                raise OSError(f"the log was not written within {LOAD_S:.0f} s")
            time.sleep(0.05)
            info = client.info("persistence")
        if info["aof_last_bgrewrite_status"] != "ok":
            raise OSError("the log cannot be written: is the disk full?")
    (into / SNAPSHOT).unlink()
    return int(keys)


def _copy_all_keys(source: redis.Redis, target: redis.Redis) -> None:
    found_keys = source.scan_iter(count=KEYS_AT_ONCE)
    while keys := list(islice(found_keys, KEYS_AT_ONCE)):
        reading: Any = source.pipeline(transaction=False)  # redis-py takes no bytes here, by its types
        writing = target.pipeline(transaction=False)
        for key in keys:
            reading.dump(key)
            reading.pexpiretime(key)
        found = reading.execute()
        for key, value, expires_ms in zip(keys, found[::2], found[1::2], strict=True):
            if value is not None:
                writing.restore(key, max(0, expires_ms), value, absttl=True)
        writing.execute()
