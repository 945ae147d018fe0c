"""Works out the standings of leagues, and keeps those that were asked for last: a long league takes a second."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cachetools import LRUCache

from seatwise.v1 import league_pb2
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league.naming import so_far_of
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import League
from seatwise_server.league.table import Row, rows_of
from seatwise_server.store import LeagueMeta, Store

MOST_LEAGUE_TABLES = 16
"""Tables that are kept in memory."""
_READ_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ShownLeague:
    """A league's table, as it is sent."""

    results: int
    voids: int
    standings: Sequence[league_pb2.LeagueStanding]


class LeagueTables:
    """A cache of tables. A table is worked out again only when there is more to count, one at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shown: LRUCache[str, ShownLeague] = LRUCache(MOST_LEAGUE_TABLES)
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "league-tables")
        """One thread: a caller that hangs up and asks again keeps no second one busy."""

    async def get_table(self, meta: LeagueMeta) -> ShownLeague:
        """Returns the table as it is now."""
        async with self._turn:
            count = await self._store.results.count_results(meta.name)
            voids = await self._store.leagues.void_matches(meta.name)
            table = self._shown.get(meta.name)
            if table is None or (table.results, table.voids) != (count, len(voids)):
                table = await self._work_out_table(meta, voids)
            self._shown[meta.name] = table
            return table

    async def _work_out_table(self, meta: LeagueMeta, voids: Collection[str]) -> ShownLeague:
        league, results = league_of(meta), await self._read_results(meta.name)
        loop = asyncio.get_running_loop()
        rows = await loop.run_in_executor(self._thread, _table_rows, meta.name, league, results, voids)
        return ShownLeague(len(results), len(voids), [_standing_message(row) for row in rows])

    async def _read_results(self, name: str) -> list[LoggedResult]:
        results: list[LoggedResult] = []
        while found := await self._store.results.read_results(name, len(results), _READ_AT_ONCE):
            results += found
        return results


def league_of(meta: LeagueMeta) -> League:
    """Returns the league as it was created."""
    return League.from_json(json.loads(meta.settings))


def _table_rows(
    name: str, league: League, results: Sequence[LoggedResult], voids: Collection[str]
) -> list[Row]:
    """Returns the same rows that the runner of the league works out."""
    schedule = schedule_of(league)
    return rows_of(league, schedule, so_far_of(name, schedule, results, voids))


def _standing_message(row: Row) -> league_pb2.LeagueStanding:
    return league_pb2.LeagueStanding(
        place=row["rank"],
        bot=row["player"],
        matches=row["matches"],
        points=row["points"],
        score=row["score"],
        wins=row["wins"],
        forfeits=row["forfeits"],
        resigned=row["resigned"],
        byes=row["byes"],
    )
