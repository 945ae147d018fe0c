"""LadderService: creating and reading ladders."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from seatwise.codec.offer import encode_options
from seatwise.codec.time_control import encode_time_control
from seatwise.v1 import ladder_pb2, ladder_service_pb2_grpc
from seatwise.v1 import ladder_service_pb2 as pb
from seatwise_referee.clock import BadTimeControl
from seatwise_referee.game import BadOptions
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.ladder.ladder_table import Line, read
from seatwise_server.refusal import Refusal
from seatwise_server.resources import timestamp
from seatwise_server.rpc.keeper import Context, Keeper
from seatwise_server.rpc.paging import page_size, place_of, strange_token
from seatwise_server.rpc.wanted import check_seats, game_of, limits_of, options_of
from seatwise_server.store import LadderMeta, Store

_NAME = re.compile(r"ladders/[a-z0-9][a-z0-9-]{0,62}")
KEPT = 16
"""Tables that are kept in mind."""
_END = 2**53
"""Behind every place of a log."""


@dataclass(frozen=True, slots=True)
class Table:
    """A ladder's, as it is sent."""

    number: int = 0
    results: int = 0
    standings: Sequence[ladder_pb2.Standing] = ()


class Tables:
    """The tables that were asked for last: reading a long one anew for each of its pages would take too long."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: OrderedDict[str, Table] = OrderedDict()

    async def of(self, ladder: str) -> Table:
        """The table as it is shown now."""
        known = self._read.get(ladder, Table())
        if shown := await self._store.ladders.shown(ladder, unless=known.number):
            lines = enumerate(read(shown.table), start=1)
            known = Table(shown.number, shown.results, [_standing(place, line) for place, line in lines])
        self._keep(ladder, known)
        return known

    def _keep(self, ladder: str, table: Table) -> None:
        self._read[ladder] = table
        self._read.move_to_end(ladder)
        if len(self._read) > KEPT:
            self._read.popitem(last=False)


class LadderDoor(ladder_service_pb2_grpc.LadderServiceServicer):
    """See ladder_service.proto."""

    def __init__(self, store: Store, keeper: Keeper) -> None:
        self._store = store
        self._tables = Tables(store)
        self._keeper = keeper

    async def CreateLadder(
        self, request: pb.CreateLadderRequest, context: Context
    ) -> pb.CreateLadderResponse:
        """See ladder_service.proto."""
        await self._keeper.admin(context)
        wanted = _ladder(request.ladder).to_bytes()
        held = await self._store.ladders.create(request.ladder.name, wanted)
        if held != wanted:
            raise Refusal("ALREADY_EXISTS", f"there is a ladder {request.ladder.name} with other settings")
        return pb.CreateLadderResponse(ladder=await self._get(request.ladder.name))

    async def GetLadder(self, request: pb.GetLadderRequest, context: Context) -> pb.GetLadderResponse:
        """See ladder_service.proto."""
        await self._keeper.anybody(context)
        return pb.GetLadderResponse(ladder=await self._get(request.name))

    async def ListLadders(self, request: pb.ListLaddersRequest, context: Context) -> pb.ListLaddersResponse:
        """See ladder_service.proto. A page token is the name of the last ladder shown."""
        await self._keeper.anybody(context)
        size, token = page_size(request.page_size), request.page_token
        if token and not _NAME.fullmatch(token):
            raise strange_token()
        names = await self._store.ladders.names(token, size + 1)
        ladders = [await self._get(name) for name in names[:size]]
        return pb.ListLaddersResponse(
            ladders=ladders, next_page_token=names[size - 1] if len(names) > size else ""
        )

    async def ListStandings(
        self, request: pb.ListStandingsRequest, context: Context
    ) -> pb.ListStandingsResponse:
        """See ladder_service.proto. A page token is the number of lines before the page."""
        await self._keeper.anybody(context)
        await self._meta(request.ladder)
        start, size = place_of(request.page_token), page_size(request.page_size)
        table = await self._tables.of(request.ladder)
        return pb.ListStandingsResponse(
            standings=table.standings[start : start + size],
            next_page_token=str(start + size) if len(table.standings) > start + size else "",
            results=table.results,
        )

    async def ListLadderResults(
        self, request: pb.ListLadderResultsRequest, context: Context
    ) -> pb.ListLadderResultsResponse:
        """See ladder_service.proto. A page token is the place of the last result shown."""
        await self._keeper.anybody(context)
        await self._meta(request.ladder)
        size = page_size(request.page_size)
        found = await self._results(request, size + 1)
        return pb.ListLadderResultsResponse(
            results=map(_result, found[:size]),
            next_page_token=str(found[size - 1].seq) if len(found) > size else "",
        )

    async def ReinstateBot(
        self, request: pb.ReinstateBotRequest, context: Context
    ) -> pb.ReinstateBotResponse:
        """See ladder_service.proto."""
        caller = await self._keeper.caller(context)
        if not caller.is_admin and caller.bot != request.bot:
            raise Refusal("NOT_ALLOWED", "an admin may do this, and the bot itself")
        await self._meta(request.ladder)
        if await self._store.bots.get(request.bot) is None:
            raise Refusal("NOT_FOUND", f"no bot {request.bot[:80]!r} is registered", bot=request.bot[:80])
        await self._store.ladders.pardon(request.ladder, request.bot)
        await self._store.ladders.let_back(request.bot, request.ladder)
        return pb.ReinstateBotResponse()

    async def _results(self, request: pb.ListLadderResultsRequest, count: int) -> Sequence[LoggedResult]:
        log = self._store.results
        if request.newest_first:
            return await log.read_back(request.ladder, place_of(request.page_token, _END), count)
        return await log.read(request.ladder, place_of(request.page_token), count)

    async def _meta(self, name: str) -> LadderMeta:
        meta = await self._store.ladders.get(name) if _NAME.fullmatch(name) else None
        if meta is None:
            raise Refusal("NOT_FOUND", f"there is no ladder {name[:80]!r}", ladder=name[:80])
        return meta

    async def _get(self, name: str) -> ladder_pb2.Ladder:
        meta = await self._meta(name)
        ladder = Ladder.from_bytes(meta.settings)
        return ladder_pb2.Ladder(
            name=name,
            game=f"games/{ladder.game}",
            seats=ladder.seats,
            options=encode_options(ladder.options),
            time_control=encode_time_control(ladder.time_control),
            owners_together=ladder.owners_together,
            create_time=timestamp(meta.create_us),
            results=await self._store.results.count(name),
        )


def _ladder(wanted: ladder_pb2.Ladder) -> Ladder:
    if not _NAME.fullmatch(wanted.name):
        raise Refusal(
            "INVALID_ARGUMENT",
            f"ladder.name is {wanted.name[:80]!r}; it must be ladders/ and 1 to 63 of a-z, 0-9 and -",
        )
    game = game_of(wanted.game)
    check_seats(game, wanted.seats, f"ladder.seats is {wanted.seats}")
    try:
        return Ladder(
            name=wanted.name,
            game=game,
            seats=wanted.seats,
            options=options_of(game, wanted.options),
            time_control=limits_of(game, wanted.time_control),
            owners_together=wanted.owners_together,
        )
    except (BadOptions, BadTimeControl) as bad:
        raise Refusal("INVALID_ARGUMENT", str(bad)) from None


def _standing(place: int, line: Line) -> ladder_pb2.Standing:
    return ladder_pb2.Standing(
        bot=line.bot,
        place=place,
        matches=line.matches,
        mu=line.mu,
        sigma=line.sigma,
        strength=line.strength,
        low=line.low,
        high=line.high,
        provisional=line.provisional,
        not_distinguishable_from=line.peers,
        off_reason=line.off,
    )


def _result(result: LoggedResult) -> ladder_pb2.LadderResult:
    return ladder_pb2.LadderResult(
        place=result.seq,
        match=result.match,
        bots=result.bots,
        points=result.points,
        ranks=result.ranks,
        endings=result.endings,
        chain=bytes.fromhex(result.chain),
    )
