"""MatchService: creating, reading, watching and ending matches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

from google.protobuf.timestamp_pb2 import Timestamp

from seatwise.v1 import match_pb2, match_service_pb2_grpc
from seatwise.v1 import match_service_pb2 as pb
from seatwise_referee.clock import BadTimeControl
from seatwise_referee.game import BadOptions
from seatwise_referee.setup import Setup
from seatwise_server import resources
from seatwise_server.lobby.aborting import Aborting
from seatwise_server.lobby.queue import CREATED
from seatwise_server.lobby.seating import Seating, match_name_for, new_match_name
from seatwise_server.play.watch import Watch
from seatwise_server.refusal import Refusal
from seatwise_server.rpc.keeper import Context, Keeper
from seatwise_server.rpc.onlookers import Onlookers
from seatwise_server.rpc.paging import page_size
from seatwise_server.rpc.sets import Sets
from seatwise_server.rpc.wanted import check_seats, game_of, limits_of, options_of
from seatwise_server.store import MatchMeta, Store
from seatwise_server.store.errors import BadPageToken

LONGEST_REQUEST_ID = 64
MOST_WAITING = 10_000
"""Created matches that wait for bots or tables."""
MOST_SPECTATORS = 500
"""Each of them waits on a connection to the store of its own, and of those the referee needs some too."""


class MatchDoor(match_service_pb2_grpc.MatchServiceServicer):
    """See match_service.proto."""

    def __init__(
        self,
        store: Store,
        seating: Seating,
        wake: Callable[[], None],
        watch: Watch,
        sets: Sets,
        keeper: Keeper,
    ) -> None:
        self._store = store
        self._seating = seating
        self._aborting = Aborting(store, seating)
        self._wake = wake
        """Tells the lobby in this process, if there is one, that a match waits."""
        self._watch = watch
        self._sets = sets
        self._keeper = keeper
        self._spectators = Onlookers(MOST_SPECTATORS, "watch matches")

    async def CreateMatch(self, request: pb.CreateMatchRequest, context: Context) -> pb.CreateMatchResponse:
        """See match_service.proto."""
        await self._keeper.admin(context)
        if await self._store.queues.count(CREATED) >= MOST_WAITING:
            raise Refusal("SERVER_FULL", f"{MOST_WAITING} matches wait for their bots", retry_after="10")
        setup = await self._setup_for(request)
        if request.HasField("deal_set") and await self._store.matches.get(setup.match) is None:
            setup = await self._sets.joined(setup, request.deal_set)
        await self._seating.create(setup, "WAITING", CREATED)
        match = await self._get(setup.match)
        if match.state == match_pb2.Match.STATE_WAITING:
            await self._store.queues.enter(CREATED, setup.match)
            self._wake()
        return pb.CreateMatchResponse(match=match)

    async def GetMatch(self, request: pb.GetMatchRequest, context: Context) -> pb.GetMatchResponse:
        """See match_service.proto."""
        await self._keeper.anybody(context)
        return pb.GetMatchResponse(match=await self._get(request.name))

    async def ListMatches(self, request: pb.ListMatchesRequest, context: Context) -> pb.ListMatchesResponse:
        """See match_service.proto."""
        await self._keeper.anybody(context)
        try:
            page = await self._store.matches.page(page_size(request.page_size), request.page_token)
        except BadPageToken as bad:
            raise Refusal("INVALID_ARGUMENT", str(bad)) from None
        matches = [resources.match(meta) for meta in page.matches]
        return pb.ListMatchesResponse(matches=matches, next_page_token=page.next_page_token)

    async def GetRecord(self, request: pb.GetRecordRequest, context: Context) -> pb.GetRecordResponse:
        """See match_service.proto."""
        await self._keeper.anybody(context)
        match = await self._get(request.name)
        if match.state == match_pb2.Match.STATE_VOIDED:
            raise Refusal(
                "MATCH_VOIDED", f"{request.name} was voided ({match.void_reason}); it has no record"
            )
        await self._sets.check_over(match)
        record = await self._store.matches.record(request.name)
        if not record:
            raise Refusal("MATCH_NOT_OVER", f"{request.name} is not over; its record is given when it is")
        return pb.GetRecordResponse(record=record.decode().rstrip("\n"))

    async def AbortMatch(self, request: pb.AbortMatchRequest, context: Context) -> pb.AbortMatchResponse:
        """See match_service.proto."""
        await self._keeper.admin(context)
        match = await self._get(request.name)
        if not match.HasField("end_time"):
            await self._aborting.abort(request.name)
        return pb.AbortMatchResponse(match=match)

    async def GetDealSet(self, request: pb.GetDealSetRequest, context: Context) -> pb.GetDealSetResponse:
        """See match_service.proto."""
        await self._keeper.anybody(context)
        return await self._sets.get(request.name)

    async def CloseDealSet(
        self, request: pb.CloseDealSetRequest, context: Context
    ) -> pb.CloseDealSetResponse:
        """See match_service.proto."""
        await self._keeper.admin(context)
        return await self._sets.close(request.name)

    async def WatchMatch(
        self, request: pb.WatchMatchRequest, context: Context
    ) -> AsyncIterator[pb.WatchMatchResponse]:
        """See match_service.proto."""
        await self._keeper.anybody(context)
        await self._sets.check_over(await self._get(request.name))
        with self._spectators.one_more():
            async for seen in self._watch.follow(request.name):
                seen.send_time.CopyFrom(_now())
                yield seen

    async def _meta(self, name: str) -> MatchMeta:
        meta = await self._store.matches.get(name) if name.startswith("matches/") else None
        if meta is None or "setup" not in meta.fields:
            raise Refusal(
                "NOT_FOUND",
                f"there is no match {name[:80]!r}, or its record is kept no longer",
                name=name[:80],
            )
        return meta

    async def _get(self, name: str) -> match_pb2.Match:
        return resources.match(await self._meta(name))

    async def _league(self, request: pb.CreateMatchRequest) -> str:
        """For which the result counts; `Refusal` if there is no such league, or somebody does not take part."""
        if not request.league:
            return ""
        meta = await self._store.leagues.get(request.league[:80])
        if meta is None:
            raise Refusal(
                "NOT_FOUND", f"there is no league {request.league[:80]!r}", league=request.league[:80]
            )
        entrants = {each["player"] for each in json.loads(meta.settings)["entrants"]}
        if strange := sorted(set(request.bots) - entrants):
            raise Refusal("INVALID_ARGUMENT", f"{strange[0][:80]} does not take part in {request.league}")
        return meta.name

    async def _setup_for(self, request: pb.CreateMatchRequest) -> Setup:
        game = game_of(request.game)
        for bot in request.bots:
            if await self._store.bots.get(bot) is None:
                raise Refusal("NOT_FOUND", f"no bot {bot[:80]!r} is registered", bot=bot[:80])
        check_seats(game, len(request.bots), f"{len(request.bots)} bots are named")
        try:
            return self._seating.setup(
                _match_name(request.request_id),
                game,
                request.bots,
                options_of(game, request.options),
                limits_of(game, request.time_control),
                await self._league(request),
            )
        except (BadOptions, BadTimeControl) as bad:
            raise Refusal("INVALID_ARGUMENT", str(bad)) from None


def _match_name(request_id: str) -> str:
    if len(request_id) > LONGEST_REQUEST_ID:
        raise Refusal("INVALID_ARGUMENT", f"a request_id has at most {LONGEST_REQUEST_ID} characters")
    return match_name_for(request_id) if request_id else new_match_name()


def _now() -> Timestamp:
    now = Timestamp()
    now.GetCurrentTime()
    return now
