"""Hears what is published: hints that something changed, never the change itself, so that one may be lost."""

from __future__ import annotations

from collections.abc import AsyncIterator

from redis.asyncio import Redis
from redis.exceptions import RedisError

from seatwise_server.store import keys
from seatwise_server.store.errors import StoreUnavailable

SILENCE_S = 5.0
"""How long one wait for a notice takes."""


async def changed_bots(client: Redis) -> AsyncIterator[str]:
    """Bots whose offers have changed, as it happens. `StoreUnavailable` when Redis is gone: listen again."""
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    try:
        await pubsub.subscribe(keys.OFFERS_CHANNEL)
        while True:
            notice = await pubsub.get_message(timeout=SILENCE_S)
            if notice:
                yield notice["data"].decode().partition(" ")[0]
    except (RedisError, OSError) as error:
        raise StoreUnavailable(f"no notices: {error}") from error
    finally:
        await pubsub.aclose()  # type: ignore[no-untyped-call]
