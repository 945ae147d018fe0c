"""MatchService: creates, shows, streams and ends matches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from seatwise.v1 import match_pb2
from seatwise.v1 import match_service_pb2 as pb
from seatwise_referee.match_state import MatchState
from seatwise_referee.setup import Setup
from seatwise_server import resources
from seatwise_server.lobby.aborting import Aborting
from seatwise_server.lobby.queue import CREATED
from seatwise_server.lobby.seating import Seating
from seatwise_server.match_names import match_name_for, new_match_name
from seatwise_server.play.no_shows import ABSENT_BOTS
from seatwise_server.play.spectating import MatchWatcher
from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import Caller
from seatwise_server.services.bots import bot_not_found
from seatwise_server.services.deal_sets import DealSetRegistry
from seatwise_server.services.league_tables import league_of
from seatwise_server.services.list_filters import parse_match_filter
from seatwise_server.services.match_requests import (
    check_seats,
    parse_game,
    parse_options,
    parse_time_control,
    refusing_bad_settings,
)
from seatwise_server.services.owner_watches import OwnerWatches
from seatwise_server.services.paging import page_size
from seatwise_server.services.request_limits import LONGEST_REQUEST_ID, check_text
from seatwise_server.services.stream_quota import StreamQuota
from seatwise_server.services.withheld_results import WithheldResults
from seatwise_server.store import MatchMeta, Store
from seatwise_server.store.errors import BadPageToken, SetsNotBuilt

MOST_WAITING = 10_000
"""The most created matches that may wait for bots or tables."""
MOST_SPECTATORS = 4_000
"""The most spectators of this process."""


class MatchService:
    """See match_service.proto."""

    def __init__(
        self,
        store: Store,
        seating: Seating,
        wake: Callable[[], None],
        watch: MatchWatcher,
        sets: DealSetRegistry,
        owner_watches: OwnerWatches,
    ) -> None:
        self._store = store
        self._seating = seating
        self._aborting = Aborting(store, seating)
        self._wake_pairing = wake
        """Wakes the lobby of this process, if there is one, when a match waits."""
        self._watch = watch
        self._sets = sets
        self._withheld = WithheldResults(store)
        self._owner_watches = owner_watches
        self._spectators = StreamQuota(MOST_SPECTATORS, "watch matches")

    async def create_match(self, caller: Caller, request: pb.CreateMatchRequest) -> pb.CreateMatchResponse:
        """See match_service.proto."""
        if await self._store.queues.count_waiting(CREATED) >= MOST_WAITING:
            raise Refusal(
                "SERVER_FULL",
                f"{MOST_WAITING} matches wait for their bots already; try again later",
                retry_after="10",
            )
        setup = await self._new_setup(request)
        if request.HasField("deal_set") and await self._store.matches.get_meta(setup.match) is None:
            setup = await self._sets.join_set(setup, request.deal_set)
        await self._seating.create_match(setup, MatchState.WAITING, CREATED)
        match = await self._get_message(setup.match)
        if match.state == match_pb2.Match.STATE_WAITING:
            await self._store.queues.enter_queue(CREATED, setup.match)
            self._wake_pairing()
        return pb.CreateMatchResponse(match=match)

    async def get_match(self, caller: Caller, request: pb.GetMatchRequest) -> pb.GetMatchResponse:
        """See match_service.proto."""
        match = await self._get_message(request.name)
        await self._withheld.withhold_from(caller, [match])
        return pb.GetMatchResponse(match=match)

    async def list_matches(self, caller: Caller, request: pb.ListMatchesRequest) -> pb.ListMatchesResponse:
        """See match_service.proto."""
        wanted, size = parse_match_filter(request), page_size(request.page_size)
        try:
            page = await self._store.matches.list_page(size, request.page_token, wanted)
        except BadPageToken as bad:
            raise Refusal("INVALID_ARGUMENT", str(bad)) from None
        except SetsNotBuilt as early:
            raise Refusal("STORE_UNAVAILABLE", str(early)) from None
        matches = [resources.match_resource(meta) for meta in page.matches]
        withheld = await self._withheld.withhold_from(caller, matches)
        return pb.ListMatchesResponse(
            matches=matches, next_page_token=page.next_page_token, withheld=withheld
        )

    async def get_record(self, caller: Caller, request: pb.GetRecordRequest) -> pb.GetRecordResponse:
        """See match_service.proto."""
        match = await self._get_message(request.name)
        if match.state == match_pb2.Match.STATE_VOIDED:
            raise Refusal(
                "MATCH_VOIDED", f"{request.name} was voided ({match.void_reason}); it has no record"
            )
        await self._sets.check_is_over(match)
        record = await self._store.matches.get_record(request.name)
        if not record:
            raise Refusal("MATCH_NOT_OVER", f"{request.name} is not over; its record can be read when it is")
        return pb.GetRecordResponse(record=record.decode().rstrip("\n"))

    async def abort_match(self, caller: Caller, request: pb.AbortMatchRequest) -> pb.AbortMatchResponse:
        """See match_service.proto."""
        match = await self._get_message(request.name)
        if not match.HasField("end_time"):
            absent = [match.bots[seat] for seat in request.absent_seats if 0 <= seat < len(match.bots)]
            await self._aborting.abort_match(
                request.name, f"{ABSENT_BOTS}{' '.join(absent)}" if absent else ""
            )
        return pb.AbortMatchResponse(match=match)

    async def get_deal_set(self, caller: Caller, request: pb.GetDealSetRequest) -> pb.GetDealSetResponse:
        """See match_service.proto."""
        return await self._sets.get_set(request.name)

    async def close_deal_set(
        self, caller: Caller, request: pb.CloseDealSetRequest
    ) -> pb.CloseDealSetResponse:
        """See match_service.proto."""
        return await self._sets.close_set(request.name)

    async def watch_match(
        self, caller: Caller, request: pb.WatchMatchRequest
    ) -> AsyncIterator[pb.WatchMatchResponse]:
        """See match_service.proto."""
        await self._sets.check_is_over(await self._get_message(request.name))
        following = aclosing(self._follow_match(request))
        async with self._owner_watches.count_watch(caller), following as responses:
            async for response in responses:
                yield response

    async def _follow_match(
        self, request: pb.WatchMatchRequest
    ) -> AsyncGenerator[pb.WatchMatchResponse, None]:
        with self._spectators.reserve_stream():
            following = self._watch.follow_match(request.name, has_all=request.all_positions)
            async with aclosing(following) as responses:
                async for response in responses:
                    yield response

    async def _get_message(self, name: str) -> match_pb2.Match:
        return resources.match_resource(await self._get_meta(name))

    async def _get_meta(self, name: str) -> MatchMeta:
        meta = await self._store.matches.get_meta(name) if name.startswith("matches/") else None
        if meta is None or "setup" not in meta.fields:
            raise Refusal(
                "NOT_FOUND",
                f"there is no match {name[:80]!r}, or it is no longer kept",
                name=name[:80],
            )
        return meta

    async def _new_setup(self, request: pb.CreateMatchRequest) -> Setup:
        """Returns the setup of the requested match, with a new seed. Raises `Refusal` if it cannot be played."""
        game = parse_game(request.game)
        check_seats(game, len(request.bots), f"{len(request.bots)} bots are named")
        for bot in request.bots:
            if await self._store.bots.get_bot(bot) is None:
                raise bot_not_found(bot)
        with refusing_bad_settings():
            return self._seating.new_setup(
                _match_name(request.request_id),
                game,
                request.bots,
                parse_options(game, request.options),
                parse_time_control(game, request.time_control),
                await self._check_league(request),
            )

    async def _check_league(self, request: pb.CreateMatchRequest) -> str:
        """Returns the league that the result counts for.

        Raises `Refusal` if it does not exist, or if one of the bots does not take part.
        """
        if not request.league:
            return ""
        meta = await self._store.leagues.get_league(request.league[:80])
        if meta is None:
            raise Refusal(
                "NOT_FOUND", f"there is no league {request.league[:80]!r}", league=request.league[:80]
            )
        if strange := sorted(set(request.bots) - set(league_of(meta).players)):
            raise Refusal("INVALID_ARGUMENT", f"{strange[0][:80]} does not take part in {request.league}")
        return meta.name


def _match_name(request_id: str) -> str:
    check_text("request_id", request_id, LONGEST_REQUEST_ID)
    return match_name_for(request_id) if request_id else new_match_name()
