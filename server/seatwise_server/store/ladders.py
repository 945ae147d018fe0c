"""Ladders: what they are, what is shown of them, and who was taken off them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, as_pairs, call


@dataclass(frozen=True, slots=True)
class LadderMeta:
    """A ladder as it is kept."""

    name: str
    settings: bytes
    create_us: int
    """When it was created, in microseconds of Redis's clock."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A ladder's table as it was last worked out."""

    number: int
    """Rises with each table."""
    results: int
    """How many results are in it."""
    table: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """Something that counts and is no result."""

    place: str
    """In its log; opaque."""
    at: int
    """How many results there were."""
    pardoned: tuple[str, ...]
    """What these bots had forfeited is forgotten."""
    absent: tuple[str, ...]
    """These bots never sat down,"""
    match: str
    """in this match."""


class Ladders:
    """All ladders on one Redis; their results are in `Results`."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def create_ladder(self, name: str, settings: bytes) -> bytes:
        """The settings of the ladder of that name: these, or those it was created with before."""
        held: bytes = await scripts.run_script(
            self._client, "ladder_create", [keys.ladder_settings(name)], settings
        )
        await call(self._client, "ZADD", keys.LADDER_INDEX, 0, name)
        return held

    async def get_ladder(self, name: str) -> LadderMeta | None:
        """The ladder; None when there is none."""
        settings, create_us = await call(
            self._client, "HMGET", keys.ladder_settings(name), "settings", "create_us"
        )
        return None if settings is None else LadderMeta(name, settings, int(create_us))

    async def list_names(self, after: str = "", count: int = 1000) -> list[str]:
        """The ladders behind that name, in the order of their names."""
        limits = (f"({after}" if after else "-", "+", "BYLEX", "LIMIT", 0, count)
        answer = await call(self._client, "ZRANGE", keys.LADDER_INDEX, *limits)
        return [name.decode() for name in answer]

    async def all_names(self) -> list[str]:
        """Of all ladders, in their order."""
        names: list[str] = []
        while page := await self.list_names(names[-1] if names else ""):
            names += page
        return names

    async def publish_table(self, name: str, results: int, table: bytes) -> bool:
        """Shows a table with so many results in it; False when a newer one is shown."""
        args = (results, table)
        return bool(
            await scripts.run_script(self._client, "ladder_publish", [keys.ladder_settings(name)], *args)
        )

    async def read_table(self, name: str, unless: int = 0) -> Shown | None:
        """The table; None when none was ever worked out, and when it is the one of that number."""
        number = await call(self._client, "HGET", keys.ladder_settings(name), "table_number")
        if number is None or int(number) == unless:
            return None
        fields = ("table_number", "table_results", "table")
        number, results, table = await call(self._client, "HMGET", keys.ladder_settings(name), *fields)
        return None if number is None else Shown(int(number), int(results), table)

    async def pardon_bot(self, name: str, bot: str) -> None:
        """Forgets what the bot has forfeited there so far."""
        await self._note_event(name, "", {"pardon": [bot]})

    async def note_absence(self, name: str, match: str, bots: Sequence[str]) -> None:
        """Notes that these never sat down in a match that was void for it. May be repeated."""
        await self._note_event(name, match, {"absent": list(bots), "match": match})

    async def _note_event(self, name: str, only: str, event: dict[str, Any]) -> None:
        named = [keys.ladder_events(name), keys.ladder_event_names(name), keys.results_places(name)]
        await scripts.run_script(self._client, "ladder_event", named, only, json.dumps(event))

    async def read_events(self, name: str, after: str = "0-0") -> list[Event]:
        """What was noted behind that place, in its order. What is noted later has come after all results there are."""
        answer = await call(self._client, "XRANGE", keys.ladder_events(name), f"({after}", "+")
        return [_parse_event(place.decode(), fields) for place, fields in answer]

    async def take_off(self, bot: str, name: str, reason: str) -> None:
        """Notes with the bot that it is off the ladder, and why."""
        await call(self._client, "HSET", keys.bot_off(bot), name, reason)

    async def let_back(self, bot: str, name: str) -> None:
        """Takes that back; nothing happens when it is on it."""
        await call(self._client, "HDEL", keys.bot_off(bot), name)

    async def ladders_off(self, bot: str) -> dict[str, str]:
        """The ladders that the bot is off, and why."""
        answer = await call(self._client, "HGETALL", keys.bot_off(bot))
        return {name.decode(): reason.decode() for name, reason in as_pairs(answer)}


def _parse_event(place: str, fields: dict[bytes, bytes]) -> Event:
    body = json.loads(fields[b"e"])
    pardoned, absent = body.get("pardon", ()), body.get("absent", ())
    return Event(place, int(fields[b"at"]), tuple(pardoned), tuple(absent), body.get("match", ""))
