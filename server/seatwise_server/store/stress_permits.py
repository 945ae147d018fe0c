"""Permits to stress this server from another machine. Each is good once."""

from __future__ import annotations

import secrets
from hashlib import sha256

from seatwise_server.store import keys
from seatwise_server.store.redis.client import RedisClient, call

_PERMIT_BYTES = 24


class StressPermits:
    """The permits on one Redis. It keeps only their hashes."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def create_permit(self, lifetime_ms: int) -> str:
        """Creates a permit that expires by itself, and returns its text."""
        text = secrets.token_urlsafe(_PERMIT_BYTES)
        await call(self._client, "SET", _key(text), 1, "PX", lifetime_ms)
        return text

    async def use_permit(self, text: str) -> bool:
        """Uses up the permit with this text; returns False if there is none. Only one of two callers gets it."""
        return bool(await call(self._client, "DEL", _key(text)))


def _key(text: str) -> str:
    return keys.stress_permit(sha256(text.encode()).hexdigest())
