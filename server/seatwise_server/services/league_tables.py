"""Computes the standings of leagues, and keeps those that were read last: a long league takes a second."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cachetools import LRUCache

from seatwise.v1 import league_pb2
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league.naming import so_far_of
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import League
from seatwise_server.league.table import Row, rows_of
from seatwise_server.services.withheld_results import WithheldResults
from seatwise_server.store import LeagueMeta, Store

MOST_LEAGUE_TABLES = 16
"""The number of tables kept in memory."""
_RESULTS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ShownLeague:
    """A league's table, in the form in which it is sent."""

    results: int
    """How many results are in the table."""
    withheld: int
    """How many more there are, of matches whose deal sets are not over."""
    voids: int
    running: frozenset[str]
    """The deal sets of the withheld results."""
    standings: Sequence[league_pb2.LeagueStanding]
    log_ms: int | None
    """When the newest result in the table was added to the log, in milliseconds; None if that is not known."""


class LeagueTables:
    """A cache of league tables. It computes one table at a time, and only when there are new results or voided matches."""

    def __init__(self, store: Store, withheld: WithheldResults) -> None:
        self._store = store
        self._withheld = withheld
        self._shown: LRUCache[tuple[str, bool], ShownLeague] = LRUCache(2 * MOST_LEAGUE_TABLES)
        """By league, and whether the table is complete: operators see the results that others do not see yet."""
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "league-tables")
        """One thread, so that a caller that disconnects and asks again cannot keep a second one busy."""

    async def get_table(self, meta: LeagueMeta, *, is_complete: bool) -> ShownLeague:
        """Returns the table as it is now; without the results of running deal sets unless `is_complete`."""
        async with self._turn:
            count = await self._store.results.count_results(meta.name)
            voids = await self._store.leagues.void_matches(meta.name)
            table = self._shown.get((meta.name, is_complete))
            if table is None or not await self._is_current(table, count, len(voids)):
                table = await self._work_out_table(meta, voids, is_complete=is_complete)
            self._shown[meta.name, is_complete] = table
            return table

    async def _is_current(self, table: ShownLeague, count: int, voids: int) -> bool:
        if (table.results + table.withheld, table.voids) != (count, voids):
            return False
        return await self._store.sets.running_among(table.running) == table.running

    async def _work_out_table(
        self, meta: LeagueMeta, voids: Mapping[str, Sequence[str] | None], *, is_complete: bool
    ) -> ShownLeague:
        league, results = league_of(meta), await self._read_results(meta.name)
        running = frozenset[str]() if is_complete else await self._withheld.running_sets(results)
        shown = [result for result in results if result.deal not in running]
        loop = asyncio.get_running_loop()
        rows = await loop.run_in_executor(self._thread, _table_rows, meta.name, league, shown, voids)
        standings = [_standing_message(row) for row in rows]
        log_ms = (shown[-1].log_ms or None) if shown else None
        return ShownLeague(len(shown), len(results) - len(shown), len(voids), running, standings, log_ms)

    async def _read_results(self, name: str) -> list[LoggedResult]:
        results: list[LoggedResult] = []
        while found := await self._store.results.read_results(name, len(results), _RESULTS_AT_ONCE):
            results += found
        return results


def league_of(meta: LeagueMeta) -> League:
    """Returns the settings of the league, as it was created."""
    return League.from_json(json.loads(meta.settings))


def _table_rows(
    name: str, league: League, results: Sequence[LoggedResult], voids: Mapping[str, Sequence[str] | None]
) -> list[Row]:
    """Returns the same rows that the league's runner computes."""
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
