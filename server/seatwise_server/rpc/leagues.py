"""LeagueService: creating and reading leagues."""

from __future__ import annotations

import json
import re

from seatwise.v1 import league_pb2, league_service_pb2_grpc
from seatwise.v1 import league_service_pb2 as pb
from seatwise_referee.journal import canonical
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import League
from seatwise_server.refusal import Refusal
from seatwise_server.resources import timestamp
from seatwise_server.rpc.keeper import Context, Keeper
from seatwise_server.rpc.league_tables import LeagueTables, league_of
from seatwise_server.rpc.paging import page_size, place_of, strange_token
from seatwise_server.store import LeagueMeta, Store

_NAME = re.compile(r"leagues/[a-z0-9][a-z0-9-]{0,62}")


class LeagueDoor(league_service_pb2_grpc.LeagueServiceServicer):
    """See league_service.proto."""

    def __init__(self, store: Store, keeper: Keeper) -> None:
        self._store = store
        self._tables = LeagueTables(store)
        self._keeper = keeper

    async def CreateLeague(
        self, request: pb.CreateLeagueRequest, context: Context
    ) -> pb.CreateLeagueResponse:
        """See league_service.proto."""
        await self._keeper.admin(context)
        name = request.league.name
        wanted = _settings(request.league)
        if await self._store.leagues.create(name, wanted) != wanted:
            raise Refusal("ALREADY_EXISTS", f"there is a league {name} with other settings")
        return pb.CreateLeagueResponse(league=await self._get(name))

    async def GetLeague(self, request: pb.GetLeagueRequest, context: Context) -> pb.GetLeagueResponse:
        """See league_service.proto."""
        await self._keeper.anybody(context)
        return pb.GetLeagueResponse(league=await self._get(request.name))

    async def ListLeagues(self, request: pb.ListLeaguesRequest, context: Context) -> pb.ListLeaguesResponse:
        """See league_service.proto. A page token is the name of the last league shown."""
        await self._keeper.anybody(context)
        size, token = page_size(request.page_size), request.page_token
        if token and not _NAME.fullmatch(token):
            raise strange_token()
        names = await self._store.leagues.names(token, size + 1)
        leagues = [await self._get(name) for name in names[:size]]
        return pb.ListLeaguesResponse(
            leagues=leagues, next_page_token=names[size - 1] if len(names) > size else ""
        )

    async def ListLeagueStandings(
        self, request: pb.ListLeagueStandingsRequest, context: Context
    ) -> pb.ListLeagueStandingsResponse:
        """See league_service.proto."""
        await self._keeper.anybody(context)
        table = await self._tables.of(await self._meta(request.league))
        return pb.ListLeagueStandingsResponse(standings=table.standings, results=table.results)

    async def ListLeagueResults(
        self, request: pb.ListLeagueResultsRequest, context: Context
    ) -> pb.ListLeagueResultsResponse:
        """See league_service.proto. A page token is the place of the last result shown."""
        await self._keeper.anybody(context)
        await self._meta(request.league)
        size = page_size(request.page_size)
        found = await self._store.results.read(request.league, place_of(request.page_token), size + 1)
        token = str(found[size - 1].seq) if len(found) > size else ""
        return pb.ListLeagueResultsResponse(results=map(_result, found[:size]), next_page_token=token)

    async def _meta(self, name: str) -> LeagueMeta:
        meta = await self._store.leagues.get(name) if _NAME.fullmatch(name) else None
        if meta is None:
            raise Refusal("NOT_FOUND", f"there is no league {name[:80]!r}", league=name[:80])
        return meta

    async def _get(self, name: str) -> league_pb2.League:
        meta = await self._meta(name)
        league = league_of(meta)
        return league_pb2.League(
            name=name,
            settings=meta.settings.decode(),
            game=f"games/{league.game}",
            bots=league.players,
            create_time=timestamp(meta.create_us),
            results=await self._store.results.count(name),
        )


def _settings(wanted: league_pb2.League) -> bytes:
    """As they are kept: the same for the same league."""
    if not _NAME.fullmatch(wanted.name):
        raise Refusal(
            "INVALID_ARGUMENT",
            f"league.name is {wanted.name[:80]!r}; it must be leagues/ and 1 to 63 of a-z, 0-9 and -",
        )
    try:
        league = League.from_json(json.loads(wanted.settings))
        schedule_of(league)
        return canonical(league.to_json())
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise Refusal("INVALID_ARGUMENT", f"league.settings are none of a league: {_why(error)}") from None


def _why(error: Exception) -> str:
    """What our own checks say; what Python says of the rest would tell of our insides."""
    match error:
        case KeyError():
            return f"{error} is missing, or not known"
        case ValueError():
            return str(error)[:200]
    return "a part of them is of another kind than it must be"


def _result(result: LoggedResult) -> league_pb2.LeagueResult:
    return league_pb2.LeagueResult(
        place=result.seq,
        match=result.match,
        bots=result.bots,
        points=result.points,
        ranks=result.ranks,
        endings=result.endings,
        chain=bytes.fromhex(result.chain),
        deal_set=result.deal,
    )
