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
    async for _, notice in _notices(client, keys.OFFERS_CHANNEL):
        yield notice.partition(" ")[0]


async def farewells(client: Redis) -> AsyncIterator[str]:
    """Processes that have let go of everything, as it happens. Raises as `changed_bots` does."""
    async for _, process in _notices(client, keys.FAREWELLS_CHANNEL):
        yield process


async def _notices(client: Redis, *channels: str) -> AsyncIterator[tuple[str, str]]:
    """Channel and text of each notice."""
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    try:
        await pubsub.subscribe(*channels)
        while True:
            notice = await pubsub.get_message(timeout=SILENCE_S)
            if notice:
                yield notice["channel"].decode(), notice["data"].decode()
    except (RedisError, OSError) as error:
        raise StoreUnavailable(f"no notices: {error}") from error
    finally:
        await pubsub.aclose()  # type: ignore[no-untyped-call]
