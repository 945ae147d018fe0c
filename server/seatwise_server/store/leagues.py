"""Leagues: their settings, and their void matches. Their results are in `ResultLogs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call


@dataclass(frozen=True, slots=True)
class LeagueMeta:
    """A league as it is stored."""

    name: str
    settings: bytes
    create_us: int
    """The time of creation, in microseconds of Redis's clock."""


class Leagues:
    """All leagues on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def create_league(self, name: str, settings: bytes) -> bytes:
        """Creates a league and returns its settings: these, or those with which it was created before."""
        held: bytes = await scripts.run_script(
            self._client, "ladder_create", [keys.league_settings(name)], settings
        )
        await call(self._client, "ZADD", keys.LEAGUE_INDEX, 0, name)
        return held

    async def get_league(self, name: str) -> LeagueMeta | None:
        """Returns the league; None if there is none."""
        settings, create_us = await call(
            self._client, "HMGET", keys.league_settings(name), "settings", "create_us"
        )
        return None if settings is None else LeagueMeta(name, settings, int(create_us))

    async def note_void(self, name: str, match: str, blamed: Sequence[str] | None = None) -> None:
        """Notes that a match of the league is void and does not count. Repeatable.

        `blamed` are the bots against which it is held that they missed it; None if it was void for another reason.
        """
        if blamed is not None:
            await call(self._client, "HSET", keys.league_absences(name), match, " ".join(blamed))
        await call(self._client, "SADD", keys.league_voids(name), match)

    async def void_matches(self, name: str) -> dict[str, list[str] | None]:
        """Returns the league's void matches, each with the bots against which it is held that they missed it."""
        voids = await call(self._client, "SMEMBERS", keys.league_voids(name))
        blamed = await call(self._client, "HGETALL", keys.league_absences(name)) if voids else {}
        return {
            match.decode(): blamed[match].decode().split() if match in blamed else None for match in voids
        }

    async def list_names(self, after: str = "", count: int = 1000) -> list[str]:
        """Returns the leagues after that name, in the order of their names."""
        limits = (f"({after}" if after else "-", "+", "BYLEX", "LIMIT", 0, count)
        answer = await call(self._client, "ZRANGE", keys.LEAGUE_INDEX, *limits)
        return [name.decode() for name in answer]
