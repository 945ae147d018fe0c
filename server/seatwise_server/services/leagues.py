"""LeagueService: creates and shows leagues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cachetools import LRUCache

from seatwise.v1 import league_pb2
from seatwise.v1 import league_service_pb2 as pb
from seatwise_referee.journal import canonical_json
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league.naming import so_far_of
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import League
from seatwise_server.league.table import Row, rows_of
from seatwise_server.refusal import bad_argument
from seatwise_server.resources import optional_timestamp, result_fields, timestamp
from seatwise_server.services.authentication import Caller
from seatwise_server.services.deal_sets import WithheldResults
from seatwise_server.services.request_fields import (
    LONGEST_REQUEST_ID,
    ResourceName,
    check_text,
    page_of_names,
    page_size,
    parse_position,
)
from seatwise_server.store import CompetitionMeta, Store

# Computes the standings of leagues, and keeps those that were read last: a long league takes a second.

MOST_LEAGUE_TABLES = 16
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

    async def get_table(self, meta: CompetitionMeta, *, is_complete: bool) -> ShownLeague:
        """Return the table as it is now; without the results of running deal sets unless `is_complete`."""
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
        self, meta: CompetitionMeta, voids: Mapping[str, Sequence[str] | None], *, is_complete: bool
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


def league_of(meta: CompetitionMeta) -> League:
    """Return the settings of the league, as it was created."""
    return League.from_json(json.loads(meta.settings))


def _table_rows(
    name: str, league: League, results: Sequence[LoggedResult], voids: Mapping[str, Sequence[str] | None]
) -> list[Row]:
    """Return the same rows that the league's runner computes."""
    schedule = schedule_of(league)
    return rows_of(league, schedule, so_far_of(name, schedule, results, voids))


def _standing_message(row: Row) -> league_pb2.LeagueStanding:
    fields = {key: row[key] for key in ("matches", "points", "score", "wins", "forfeits", "resigned", "byes")}
    return league_pb2.LeagueStanding(place=row["rank"], bot=row["player"], **fields)


_NAMES = ResourceName("leagues", "league", "league")


class LeagueService:
    """See league_service.proto."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._withheld = WithheldResults(store)
        self._tables = LeagueTables(store, self._withheld)

    async def create_league(self, caller: Caller, request: pb.CreateLeagueRequest) -> pb.CreateLeagueResponse:
        check_text("request_id", request.request_id, LONGEST_REQUEST_ID)
        name = request.league.name
        wanted = _parse_settings(request.league)
        await _NAMES.create_resource(name, wanted, self._store.leagues.create)
        return pb.CreateLeagueResponse(league=await self._get_message(name))

    async def get_league(self, caller: Caller, request: pb.GetLeagueRequest) -> pb.GetLeagueResponse:
        return pb.GetLeagueResponse(league=await self._get_message(request.name))

    async def list_leagues(self, caller: Caller, request: pb.ListLeaguesRequest) -> pb.ListLeaguesResponse:
        """See league_service.proto. A page token is the name of the last league shown."""
        names, token = await page_of_names(
            self._store.leagues.list_names, _NAMES, request.page_size, request.page_token
        )
        leagues = [await self._get_message(name) for name in names]
        return pb.ListLeaguesResponse(leagues=leagues, next_page_token=token)

    async def list_league_standings(
        self, caller: Caller, request: pb.ListLeagueStandingsRequest
    ) -> pb.ListLeagueStandingsResponse:
        meta = await self._get_meta(request.league)
        table = await self._tables.get_table(meta, is_complete=caller.is_operator)
        return pb.ListLeagueStandingsResponse(
            standings=table.standings,
            results=table.results,
            withheld=table.withheld,
            update_time=optional_timestamp(table.log_ms),
        )

    async def list_league_results(
        self, caller: Caller, request: pb.ListLeagueResultsRequest
    ) -> pb.ListLeagueResultsResponse:
        """See league_service.proto. A page token is the position of the last result shown."""
        await self._get_meta(request.league)
        size = page_size(request.page_size)
        after = parse_position(request.page_token)
        found = await self._store.results.read_results(request.league, after, size + 1)
        token = str(found[size - 1].seq) if len(found) > size else ""
        results = [league_pb2.LeagueResult(**result_fields(it), deal_set=it.deal) for it in found[:size]]
        withheld = await self._withheld.withhold_logged(caller, results)
        return pb.ListLeagueResultsResponse(results=results, next_page_token=token, withheld=withheld)

    async def _get_meta(self, name: str) -> CompetitionMeta:
        return await _NAMES.find_resource(name, self._store.leagues.find)

    async def _get_message(self, name: str) -> league_pb2.League:
        meta = await self._get_meta(name)
        league = league_of(meta)
        return league_pb2.League(
            name=name,
            settings=meta.settings.decode(),
            game=f"games/{league.game}",
            bots=league.players,
            create_time=timestamp(meta.create_us),
            results=await self._store.results.count_results(name),
        )


def _parse_settings(wanted: league_pb2.League) -> bytes:
    """Return the settings in canonical form, so that the same league is always stored as the same bytes."""
    _NAMES.check_name(wanted.name, "league.name")
    try:
        league = League.from_json(json.loads(wanted.settings))
        schedule_of(league)
        return canonical_json(league.to_json())
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        message = f"league.settings is not valid: {_explain_error(error)}"
        raise bad_argument("league.settings", message) from None


def _explain_error(error: Exception) -> str:
    """Return the text of the server's own checks. Python's texts for other errors would reveal internals."""
    match error:
        case KeyError():
            return f"{error} is missing or unknown"
        case ValueError():
            return str(error)[:200]
    return "a part of it has the wrong type"
