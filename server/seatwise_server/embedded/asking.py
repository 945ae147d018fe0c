"""What is asked of the server behind a socket, once and without waiting long."""

from __future__ import annotations

from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


def _client(socket: Path | None) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(socket), socket_timeout=1.0, retry=Retry(NoBackoff(), 0))


def answers(socket: Path | None) -> bool:
    """Whether it is there and has loaded its data."""
    client = _client(socket)
    try:
        return bool(client.ping())
    except redis.RedisError:  # not there yet, or loading
        return False
    finally:
        client.close()


def shut_down(socket: Path | None) -> bool:
    """Asks it to end; whether it has heard. One that stands still has not."""
    client = _client(socket)
    try:
        client.shutdown(nosave=True, now=True, force=True)  # the append-only file has everything
    except redis.RedisError:
        return False
    finally:
        client.close()
    return True
