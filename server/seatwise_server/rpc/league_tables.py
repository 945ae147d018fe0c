"""The tables of leagues: anybody may ask for one, and of a long league it takes a second to work out."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from seatwise.v1 import league_pb2
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league.naming import so_far_of
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import League
from seatwise_server.league.table import Row, rows_of
from seatwise_server.store import LeagueMeta, Store

KEPT = 16
"""Tables that are kept in mind."""
_READ_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Table:
    """A league's, as it is sent."""

    results: int
    voids: int
    standings: Sequence[league_pb2.LeagueStanding]


class LeagueTables:
    """Those that were asked for last. Anew only when there is more to count, and one at a time, whoever asks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, Table] = OrderedDict()
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "league-tables")
        """One: who hangs up and asks again keeps no second one busy."""

    async def of(self, meta: LeagueMeta) -> Table:
        """The table as it is now."""
        async with self._turn:
            count, voids = (
                await self._store.results.count(meta.name),
                await self._store.leagues.voids(meta.name),
            )
            table = self._known.get(meta.name)
            if table is None or (table.results, table.voids) != (count, len(voids)):
                table = await self._worked_out(meta, voids)
            self._keep(meta.name, table)
            return table

    async def _worked_out(self, meta: LeagueMeta, voids: Collection[str]) -> Table:
        league, results = league_of(meta), await self._results(meta.name)
        loop = asyncio.get_running_loop()
        rows = await loop.run_in_executor(self._thread, _rows, meta.name, league, results, voids)
        return Table(len(results), len(voids), [_standing(row) for row in rows])

    async def _results(self, name: str) -> list[LoggedResult]:
        results: list[LoggedResult] = []
        while found := await self._store.results.read(name, len(results), _READ_AT_ONCE):
            results += found
        return results

    def _keep(self, name: str, table: Table) -> None:
        self._known[name] = table
        self._known.move_to_end(name)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)


def league_of(meta: LeagueMeta) -> League:
    """The league as it was created."""
    return League.from_json(json.loads(meta.settings))


def _rows(name: str, league: League, results: Sequence[LoggedResult], voids: Collection[str]) -> list[Row]:
    """As who runs the league has them."""
    schedule = schedule_of(league)
    return rows_of(league, schedule, so_far_of(name, schedule, results, voids))


def _standing(row: Row) -> league_pb2.LeagueStanding:
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
