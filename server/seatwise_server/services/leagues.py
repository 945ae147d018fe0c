"""LeagueService: creates and shows leagues."""

from __future__ import annotations

import json

from seatwise.v1 import league_pb2
from seatwise.v1 import league_service_pb2 as pb
from seatwise_referee.journal import canonical_json
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import League
from seatwise_server.refusal import Refusal
from seatwise_server.resources import optional_timestamp, timestamp
from seatwise_server.services.authentication import Caller
from seatwise_server.services.league_tables import LeagueTables, league_of
from seatwise_server.services.paging import page_of_names, page_size, parse_position
from seatwise_server.services.resource_names import ResourceName
from seatwise_server.services.withheld_results import WithheldResults
from seatwise_server.store import LeagueMeta, Store

_NAMES = ResourceName("leagues", "league", "league")


class LeagueService:
    """See league_service.proto."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._withheld = WithheldResults(store)
        self._tables = LeagueTables(store, self._withheld)

    async def create_league(self, caller: Caller, request: pb.CreateLeagueRequest) -> pb.CreateLeagueResponse:
        """See league_service.proto."""
        name = request.league.name
        wanted = _parse_settings(request.league)
        await _NAMES.create_resource(name, wanted, self._store.leagues.create_league)
        return pb.CreateLeagueResponse(league=await self._get_message(name))

    async def get_league(self, caller: Caller, request: pb.GetLeagueRequest) -> pb.GetLeagueResponse:
        """See league_service.proto."""
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
        """See league_service.proto."""
        meta = await self._get_meta(request.league)
        table = await self._tables.get_table(meta, is_complete=caller.is_operator)
        return pb.ListLeagueStandingsResponse(
            standings=table.standings,
            results=table.results,
            withheld=table.withheld,
            update_time=optional_timestamp(table.log_ms),
        )

    async def list_league_standings_version(
        self, caller: Caller, request: pb.ListLeagueStandingsRequest
    ) -> str:
        """Returns how many results and voided matches the table covers, and how many results it leaves out."""
        meta = await self._get_meta(request.league)
        table = await self._tables.get_table(meta, is_complete=caller.is_operator)
        return f"{table.results}-{table.withheld}-{table.voids}"

    async def list_league_results(
        self, caller: Caller, request: pb.ListLeagueResultsRequest
    ) -> pb.ListLeagueResultsResponse:
        """See league_service.proto. A page token is the position of the last result shown."""
        await self._get_meta(request.league)
        size = page_size(request.page_size)
        after = parse_position(request.page_token)
        found = await self._store.results.read_results(request.league, after, size + 1)
        token = str(found[size - 1].seq) if len(found) > size else ""
        results = list(map(_result_message, found[:size]))
        withheld = await self._withheld.withhold_logged(caller, results)
        return pb.ListLeagueResultsResponse(results=results, next_page_token=token, withheld=withheld)

    async def _get_meta(self, name: str) -> LeagueMeta:
        return await _NAMES.find_resource(name, self._store.leagues.get_league)

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
    """Returns the settings in canonical form, so that the same league is always stored as the same bytes."""
    _NAMES.check_name(wanted.name, "league.name")
    try:
        league = League.from_json(json.loads(wanted.settings))
        schedule_of(league)
        return canonical_json(league.to_json())
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        message = f"league.settings is not valid: {_explain_error(error)}"
        raise Refusal("INVALID_ARGUMENT", message) from None


def _explain_error(error: Exception) -> str:
    """Returns the text of the server's own checks. Python's texts for other errors would reveal internals."""
    match error:
        case KeyError():
            return f"{error} is missing or unknown"
        case ValueError():
            return str(error)[:200]
    return "a part of it has the wrong type"


def _result_message(result: LoggedResult) -> league_pb2.LeagueResult:
    return league_pb2.LeagueResult(
        place=result.seq,
        match=result.match,
        bots=result.bots,
        points=result.points,
        ranks=result.ranks,
        endings=result.endings,
        chain=bytes.fromhex(result.chain),
        deal_set=result.deal,
        log_time=optional_timestamp(result.log_ms or None),
    )
