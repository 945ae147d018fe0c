"""Requests to a Redis server behind a UNIX socket, made once and with a short timeout."""

from __future__ import annotations

from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


def _client(socket: Path | None) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(socket), socket_timeout=1.0, retry=Retry(NoBackoff(), 0))


def is_ready(socket: Path | None) -> bool:
    """Returns whether the server runs and has loaded its data."""
    client = _client(socket)
    try:
        return bool(client.ping())
    except redis.RedisError:  # it is not there yet, or it loads its data
        return False
    finally:
        client.close()


def shut_down(socket: Path | None) -> bool:
    """Asks the server to end, and returns whether it answered. A process that is stopped does not answer."""
    client = _client(socket)
    try:
        client.shutdown(nosave=True, now=True, force=True)  # the append-only file has everything
    except redis.RedisError:
        return False
    finally:
        client.close()
    return True
