"""Leagues: what they are, and what was played for nothing. Their results are in `Results`."""

from __future__ import annotations

from dataclasses import dataclass

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call


@dataclass(frozen=True, slots=True)
class LeagueMeta:
    """A league as it is kept."""

    name: str
    settings: bytes
    create_us: int
    """When it was created, in microseconds of Redis's clock."""


class Leagues:
    """All leagues on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def create_league(self, name: str, settings: bytes) -> bytes:
        """The settings of the league of that name: these, or those it was created with before."""
        held: bytes = await scripts.run_script(
            self._client, "ladder_create", [keys.league_settings(name)], settings
        )
        await call(self._client, "ZADD", keys.LEAGUE_INDEX, 0, name)
        return held

    async def get_league(self, name: str) -> LeagueMeta | None:
        """The league; None when there is none."""
        settings, create_us = await call(
            self._client, "HMGET", keys.league_settings(name), "settings", "create_us"
        )
        return None if settings is None else LeagueMeta(name, settings, int(create_us))

    async def note_void(self, name: str, match: str) -> None:
        """Notes that a match of the league counts for nobody. May be repeated."""
        await call(self._client, "SADD", keys.league_voids(name), match)

    async def void_matches(self, name: str) -> set[str]:
        """The matches of the league that were void; empty when none was."""
        return {match.decode() for match in await call(self._client, "SMEMBERS", keys.league_voids(name))}

    async def list_names(self, after: str = "", count: int = 1000) -> list[str]:
        """The leagues behind that name, in the order of their names."""
        limits = (f"({after}" if after else "-", "+", "BYLEX", "LIMIT", 0, count)
        answer = await call(self._client, "ZRANGE", keys.LEAGUE_INDEX, *limits)
        return [name.decode() for name in answer]
