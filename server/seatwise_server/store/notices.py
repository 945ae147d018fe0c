"""Hears what is published: hints that something changed, never the change itself, so that one may be lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from seatwise_server.store import keys
from seatwise_server.store.client import Client


async def changed_bots(client: Client) -> AsyncIterator[str]:
    """Bots whose offers have changed, as it happens. `StoreUnavailable` when Redis is gone: listen again."""
    async for _, notice in _notices(client, keys.OFFERS_CHANNEL):
        yield notice.partition(" ")[0]


async def farewells(client: Client) -> AsyncIterator[str]:
    """Processes that have let go of everything, as it happens. Raises as `changed_bots` does."""
    async for _, process in _notices(client, keys.FAREWELLS_CHANNEL):
        yield process


async def _notices(client: Client, *channels: str) -> AsyncIterator[tuple[str, str]]:
    """Channel and text of each notice."""
    async with aclosing(client.listen(*channels)) as notices:
        async for notice in notices:
            yield notice
