"""Results of ladders and leagues, and their settings, tables and events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import as_pairs
from seatwise_server.store.redis.scripts import ScriptCall, StorePart

HISTORY_GAP_MS = 600_000
"""The least time between two points of a ladder's history."""

MOST_HISTORY_POINTS = 512


def append_call(competition: str, result: LoggedResult) -> ScriptCall:
    """Return the script of `ResultLogs.append_result`."""
    body = result.to_json()
    del body["seq"]
    body.pop("log_ms", None)
    named = [keys.results_log(competition), keys.results_places(competition)]
    written = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return "result_append", named, (result.match, written)


class ResultLogs(StorePart):
    """All result logs on one Redis. A log exists from its first result on; no result is ever removed."""

    async def append_result(self, competition: str, result: LoggedResult) -> int:
        """Append a result and return its place, from 1; the `seq` of `result` is ignored.

        Repeatable: a match that is already in the log keeps its place and its first result.
        """
        [place] = await scripts.run_in_order(self._client, append_call(competition, result))
        return int(place)

    async def read_results(
        self, competition: str, after_seq: int = 0, count: int = 1000
    ) -> list[LoggedResult]:
        """Return the next results after that place, in order; empty if there are none."""
        args = (f"{after_seq + 1}-0", "+", "COUNT", count)
        return _parse_results(await self._call("XRANGE", keys.results_log(competition), *args))

    async def read_back(
        self, competition: str, before_seq: int = 2**53, count: int = 1000
    ) -> list[LoggedResult]:
        """Return the last results before that place, newest first; empty if there are none."""
        args = (f"({before_seq}-0", "-", "COUNT", count)
        return _parse_results(await self._call("XREVRANGE", keys.results_log(competition), *args))

    async def place_in(self, competitions: Sequence[str], match: str) -> tuple[str, int] | None:
        """Return the log among these that has the match, and the match's place in it; None if none has it."""
        answers = await self._call_many([("HGET", keys.results_places(each), match) for each in competitions])
        found = zip(competitions, answers, strict=True)
        return next(((each, int(place)) for each, place in found if place is not None), None)

    async def count_results(self, competition: str) -> int:
        """Return the number of results."""
        return int(await self._call("XLEN", keys.results_log(competition)))


def _parse_results(answer: Any) -> list[LoggedResult]:
    found = []
    for place, fields in answer:
        more = {"seq": int(place.partition(b"-")[0]), "log_ms": int(fields.get(b"t", 0))}
        found.append(LoggedResult.from_json({**json.loads(fields[b"r"]), **more}))
    return found


@dataclass(frozen=True, slots=True)
class CompetitionMeta:
    """A ladder or league as it is stored."""

    name: str
    settings: bytes
    create_us: int
    """The time of creation, in microseconds of Redis's clock."""
    close_ms: int | None = None
    """When it was closed, in milliseconds of Redis's clock; None while it is open."""
    final_results: int | None = None
    """The number of results that count, once it is closed. The log may have more."""


class Competitions(StorePart):
    """The settings of all ladders, or of all leagues, on one Redis. Their results are in `ResultLogs`."""

    index: ClassVar[str]
    settings_key: ClassVar[staticmethod[[str], str]]

    async def create(self, name: str, settings: bytes) -> bytes:
        """Create a ladder or league and return its settings: these, or those with which it was created before."""
        held: bytes = await self._run("ladder_create", [self.settings_key(name)], settings)
        await self._call("ZADD", self.index, 0, name)
        return held

    async def find(self, name: str) -> CompetitionMeta | None:
        """Return the ladder or league; None if there is none."""
        fields = ("settings", "create_us", "close_ms", "final_results")
        settings, *numbers = await self._call("HMGET", self.settings_key(name), *fields)
        if settings is None:
            return None
        create_us, *ends = (None if each is None else int(each) for each in numbers)
        return CompetitionMeta(name, settings, create_us or 0, *ends)

    async def list_names(self, after: str = "", count: int = 1000) -> list[str]:
        """Return those after that name, in the order of their names."""
        limits = (f"({after}" if after else "-", "+", "BYLEX", "LIMIT", 0, count)
        return [name.decode() for name in await self._call("ZRANGE", self.index, *limits)]


@dataclass(frozen=True, slots=True)
class Shown:
    """A ladder's published table."""

    number: int
    """Rises with each table."""
    results: int
    """The number of results in the table."""
    table: bytes
    publish_ms: int
    """When it was published, in milliseconds of Redis's clock."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that counts for a ladder but is not a result."""

    place: str
    """Its place in the log of events; opaque."""
    at: int
    """The number of results at that time."""
    pardoned: tuple[str, ...]
    """The bots whose forfeits so far are forgotten."""
    absent: tuple[str, ...]
    """The bots that never sat down in `match`."""
    match: str
    """The match of the absence; empty for a pardon."""
    by_itself: bool
    """Whether the bots of a pardon asked for it themselves."""

    @property
    def at_ms(self) -> int:
        """When it was noted, in milliseconds of Redis's clock."""
        return int(self.place.partition("-")[0])


@dataclass(frozen=True, slots=True)
class LadderExclusion:
    """Why a bot is off a ladder."""

    reason: str
    back_ms: int
    """From when its own token readmits it, in milliseconds of Redis's clock; 0 if only the operator does."""


class Ladders(Competitions):
    """All ladders on one Redis."""

    index, settings_key = keys.LADDER_INDEX, staticmethod(keys.ladder_settings)

    async def close_ladder(self, name: str) -> None:
        """Close the ladder: the results in its log now are final, and no others count. Repeatable."""
        await self._run("ladder_close", [keys.ladder_settings(name), keys.results_places(name)])

    async def closed_among(self, names: Sequence[str]) -> list[str]:
        """Return those of these ladders that are closed."""
        found = await self._call_many([("HEXISTS", keys.ladder_settings(name), "close_ms") for name in names])
        return [name for name, is_closed in zip(names, found, strict=True) if is_closed]

    async def all_names(self) -> list[str]:
        """Return the names of all ladders, in order."""
        names: list[str] = []
        while page := await self.list_names(names[-1] if names else ""):
            names += page
        return names

    async def publish_table(self, name: str, results: int, table: bytes) -> bool:
        """Publish a table with so many results in it; returns False if a newer one is published."""
        return bool(await self._run("ladder_publish", [keys.ladder_settings(name)], results, table))

    async def read_table(self, name: str, unless: int = 0) -> Shown | None:
        """Return the published table; None if there is none yet, or if its number is `unless`."""
        number = await self._call("HGET", keys.ladder_settings(name), "table_number")
        if number is None or int(number) == unless:
            return None
        fields = ("table_number", "table_results", "table", "table_ms")
        number, results, table, at_ms = await self._call("HMGET", keys.ladder_settings(name), *fields)
        if number is None:
            return None
        return Shown(int(number), int(results), table, int(at_ms))

    async def add_history_point(self, name: str, point: bytes) -> bool:
        """Add a point to the ladder's history; returns False if the last one is newer than `HISTORY_GAP_MS`."""
        named = [keys.ladder_history_times(name), keys.ladder_history_points(name)]
        args = (HISTORY_GAP_MS, MOST_HISTORY_POINTS, point)
        return bool(await self._run("ladder_history", named, *args))

    async def read_history(self, name: str, before_ms: int, count: int) -> list[tuple[int, bytes]]:
        """Return the last points before that time in milliseconds, newest first; empty if there are none."""
        how = (f"({before_ms}", "-inf", "BYSCORE", "REV", "LIMIT", 0, count)
        times = await self._call("ZRANGE", keys.ladder_history_times(name), *how)
        if not times:
            return []
        points = await self._call("HMGET", keys.ladder_history_points(name), *times)
        found = zip(times, points, strict=True)
        return [(int(time), point) for time, point in found if point is not None]

    async def pardon_bot(self, name: str, bot: str, *, by_itself: bool = False) -> None:
        """Forget the bot's forfeits in the ladder so far; if it asks for that itself, only after its pause."""
        await self._note_event(name, "", {"pardon": [bot]} | ({"by_itself": True} if by_itself else {}))

    async def note_absence(self, name: str, match: str, bots: Sequence[str]) -> None:
        """Notes that these bots never sat down in a match that was void for that reason. Repeatable."""
        await self._note_event(name, match, {"absent": list(bots), "match": match})

    async def _note_event(self, name: str, event_name: str, event: dict[str, Any]) -> None:
        named = [keys.ladder_events(name), keys.ladder_event_names(name), keys.results_places(name)]
        await self._run("ladder_event", named, event_name, json.dumps(event))

    async def read_events(self, name: str, after: str = "0-0") -> list[Event]:
        """Return the events after that place, in order. An event that is noted later comes after all results that exist now."""
        answer = await self._call("XRANGE", keys.ladder_events(name), f"({after}", "+")
        return [_parse_event(place.decode(), fields) for place, fields in answer]

    async def take_off(self, bot: str, name: str, off: LadderExclusion) -> None:
        """Notes that the bot is off the ladder, and why."""
        await self._call("HSET", keys.bot_off(bot), name, json.dumps(asdict(off)))

    async def let_back(self, bot: str, name: str) -> None:
        """Let the bot back onto the ladder; nothing happens if it is on it."""
        await self._call("HDEL", keys.bot_off(bot), name)

    async def ladders_off(self, bot: str) -> dict[str, LadderExclusion]:
        """Return the ladders that the bot is off, each with the reason."""
        answer = await self._call("HGETALL", keys.bot_off(bot))
        return {name.decode(): LadderExclusion(**json.loads(off)) for name, off in as_pairs(answer)}


def _parse_event(place: str, fields: dict[bytes, bytes]) -> Event:
    body = json.loads(fields[b"e"])
    bots = tuple(body.get("pardon", ())), tuple(body.get("absent", ()))
    return Event(place, int(fields[b"at"]), *bots, body.get("match", ""), body.get("by_itself", False))


class Leagues(Competitions):
    """All leagues on one Redis."""

    index, settings_key = keys.LEAGUE_INDEX, staticmethod(keys.league_settings)

    async def note_void(self, name: str, match: str, blamed: Sequence[str] | None = None) -> None:
        """Notes that a match of the league is void and does not count. Repeatable.

        `blamed` are the bots against which it is held that they missed it; None if it was void for another reason.
        """
        if blamed is not None:
            await self._call("HSET", keys.league_absences(name), match, " ".join(blamed))
        await self._call("SADD", keys.league_voids(name), match)

    async def void_matches(self, name: str) -> dict[str, list[str] | None]:
        """Return the league's void matches, each with the bots against which it is held that they missed it."""
        voids = await self._call("SMEMBERS", keys.league_voids(name))
        blamed = await self._call("HGETALL", keys.league_absences(name)) if voids else {}
        return {each.decode(): blamed[each].decode().split() if each in blamed else None for each in voids}
