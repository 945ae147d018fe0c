"""Hears what is published: hints that something changed, never the change itself, so that one may be lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import NamedTuple

from seatwise_server.store import keys
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.seats import SeatOf, seat_of


class LobbyNotice(NamedTuple):
    """Something has happened to a bot."""

    bot: str
    attend_id: str = ""
    """It attends anew, under this id; empty when it is about a seat."""
    seat: SeatOf | None = None
    """Of which the offer has changed."""


async def lobby_notices(client: RedisClient) -> AsyncIterator[LobbyNotice]:
    """What lobbies want to know, as it happens. `StoreUnavailable` when Redis is gone: listen again."""
    async for channel, notice in _notices(client, keys.OFFERS_CHANNEL, keys.ATTENDS_CHANNEL):
        bot, _, what = notice.partition(" ")
        yield (
            LobbyNotice(bot, what)
            if channel == keys.ATTENDS_CHANNEL
            else LobbyNotice(bot, seat=seat_of(what))
        )


async def handover_notices(client: RedisClient) -> AsyncIterator[str]:
    """Processes that have let go of everything, as it happens. Raises as `lobby_notices` does."""
    async for _, process in _notices(client, keys.FAREWELLS_CHANNEL):
        yield process


async def _notices(client: RedisClient, *channels: str) -> AsyncIterator[tuple[str, str]]:
    """Channel and text of each notice."""
    async with aclosing(client.listen_to(*channels)) as notices:
        async for notice in notices:
            yield notice
