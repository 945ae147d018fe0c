"""Listens to published notices. A notice says only that something has changed, so a lost notice does no harm."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import NamedTuple

from seatwise_server.store import keys
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.seats import SeatOf, seat_of


class LobbyNotice(NamedTuple):
    """A notice that something has changed for a bot."""

    bot: str
    attend_id: str = ""
    """The id of the bot's new attendance; empty if the notice is about a seat."""
    seat: SeatOf | None = None
    """The seat whose offer has changed; None if the notice is about an attendance."""


async def lobby_notices(client: RedisClient) -> AsyncIterator[LobbyNotice]:
    """Yields the notices for lobbies as they are published. Raises `StoreUnavailable` if Redis is away: listen again."""
    async for channel, notice in _notices(client, keys.OFFERS_CHANNEL, keys.ATTENDS_CHANNEL):
        bot, _, what = notice.partition(" ")
        yield (
            LobbyNotice(bot, what)
            if channel == keys.ATTENDS_CHANNEL
            else LobbyNotice(bot, seat=seat_of(what))
        )


async def handover_notices(client: RedisClient) -> AsyncIterator[str]:
    """Yields the names of processes that have given up all their matches. Raises the same errors as `lobby_notices`."""
    async for _, process in _notices(client, keys.HANDOVERS_CHANNEL):
        yield process


async def _notices(client: RedisClient, *channels: str) -> AsyncIterator[tuple[str, str]]:
    """Yields the channel and the text of each notice."""
    async with aclosing(client.listen_to(*channels)) as notices:
        async for notice in notices:
            yield notice
