"""LadderService: creates, shows and closes ladders, and reinstates bots that were taken off a ladder."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from cachetools import LRUCache

from seatwise.codec.offer import encode_options, encode_time_control
from seatwise.v1 import bot_pb2, ladder_pb2
from seatwise.v1 import ladder_service_pb2 as pb
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.ladder.ladder_table import LadderRow, decode_point, decode_table
from seatwise_server.refusal import Refusal, bad_argument
from seatwise_server.resources import optional_timestamp, result_fields, timestamp
from seatwise_server.services.authentication import Caller
from seatwise_server.services.bots import bot_not_found, check_bot_name
from seatwise_server.services.matches import (
    check_seats,
    parse_game,
    parse_options,
    parse_time_control,
    refusing_bad_settings,
)
from seatwise_server.services.request_fields import (
    LONGEST_REQUEST_ID,
    ResourceName,
    check_text,
    page_of_names,
    page_size,
    parse_position,
)
from seatwise_server.store import CompetitionMeta, Store, now_ms

# Keeps the ladder tables that were read last: reading a long table again for each of its pages takes too long.

MOST_LADDER_TABLES = 16


@dataclass(frozen=True, slots=True)
class ShownLadder:
    """A ladder's table, in the form in which it is sent."""

    number: int = 0
    """Rises with each new table of the ladder."""
    results: int = 0
    standings: Sequence[ladder_pb2.Standing] = ()
    publish_ms: int | None = None
    """When it was published, in milliseconds; None if that is not known."""


class LadderTables:
    """A cache of ladder tables, each in its last published form."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shown: LRUCache[str, ShownLadder] = LRUCache(MOST_LADDER_TABLES)

    async def get_table(self, ladder: str) -> ShownLadder:
        """Return the table as last published; an empty one for a ladder without results."""
        table = self._shown.get(ladder, ShownLadder())
        if newer := await self._store.ladders.read_table(ladder, unless=table.number):
            lines = enumerate(decode_table(newer.table), start=1)
            standings = [_standing_message(place, line) for place, line in lines]
            table = ShownLadder(newer.number, newer.results, standings, newer.publish_ms)
        self._shown[ladder] = table
        return table


_SHOWN_AS_THEY_ARE = ("bot", "matches", "mu", "sigma", "strength", "low", "high", "provisional")


def _standing_message(place: int, line: LadderRow) -> ladder_pb2.Standing:
    fields: dict[str, Any] = {name: getattr(line, name) for name in _SHOWN_AS_THEY_ARE}
    return ladder_pb2.Standing(
        **fields, place=place, not_distinguishable_from=line.peers, off_reason=line.off
    )


_NAMES = ResourceName("ladders", "ladder", "ladder")
MOST_HISTORY_BOTS = 20
"""The most bots that a call for a ladder's history may name."""
MOST_SHOWN_UNASKED = 10
_END_OF_LOG = 2**53
"""A position after every position of a result log."""


class LadderService:
    """See ladder_service.proto."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tables = LadderTables(store)

    async def create_ladder(self, caller: Caller, request: pb.CreateLadderRequest) -> pb.CreateLadderResponse:
        check_text("request_id", request.request_id, LONGEST_REQUEST_ID)
        ladder = _parse_ladder(request.ladder)
        if ladder.follows:
            before = Ladder.from_bytes((await self._get_meta(ladder.follows)).settings)
            ladder = replace(ladder, season=before.season + 1)
        wanted = ladder.to_bytes()
        await _NAMES.create_resource(request.ladder.name, wanted, self._store.ladders.create)
        return pb.CreateLadderResponse(ladder=await self._get_message(request.ladder.name))

    async def close_ladder(self, caller: Caller, request: pb.CloseLadderRequest) -> pb.CloseLadderResponse:
        await self._get_meta(request.name)
        await self._store.ladders.close_ladder(request.name)
        return pb.CloseLadderResponse(ladder=await self._get_message(request.name))

    async def get_ladder(self, caller: Caller, request: pb.GetLadderRequest) -> pb.GetLadderResponse:
        return pb.GetLadderResponse(ladder=await self._get_message(request.name))

    async def list_ladders(self, caller: Caller, request: pb.ListLaddersRequest) -> pb.ListLaddersResponse:
        """See ladder_service.proto. A page token is the name of the last ladder shown."""
        names, token = await page_of_names(
            self._store.ladders.list_names, _NAMES, request.page_size, request.page_token
        )
        ladders = [await self._get_message(name) for name in names]
        return pb.ListLaddersResponse(ladders=ladders, next_page_token=token)

    async def list_standings(
        self, caller: Caller, request: pb.ListStandingsRequest
    ) -> pb.ListStandingsResponse:
        """See ladder_service.proto. A page token is the number of lines before the page."""
        await self._get_meta(request.ladder)
        start, size = parse_position(request.page_token), page_size(request.page_size)
        table = await self._tables.get_table(request.ladder)
        if request.bot:
            check_bot_name("bot", request.bot)
            found = (number for number, line in enumerate(table.standings) if line.bot == request.bot)
            if (number := next(found, None)) is None:
                raise Refusal("NOT_FOUND", f"{request.bot} has no place on {request.ladder}")
            start = max(0, number - size // 2)
        shown = table.standings[start : start + size]
        kinds = await self._store.bots.kinds_of([line.bot for line in shown])
        return pb.ListStandingsResponse(
            standings=map(_with_kind, shown, kinds),
            next_page_token=str(start + size) if len(table.standings) > start + size else "",
            results=table.results,
            update_time=optional_timestamp(table.publish_ms),
            total_size=len(table.standings),
        )

    async def list_standings_history(
        self, caller: Caller, request: pb.ListStandingsHistoryRequest
    ) -> pb.ListStandingsHistoryResponse:
        """See ladder_service.proto. A page token is the time of the last point shown, in milliseconds."""
        await self._get_meta(request.ladder)
        if len(request.bots) > MOST_HISTORY_BOTS:
            why = f"{len(request.bots)} bots are named; at most {MOST_HISTORY_BOTS} are taken"
            raise bad_argument("bots", why)
        for bot in request.bots:
            check_bot_name("bots", bot)
        size = page_size(request.page_size)
        before_ms = parse_position(request.page_token, _END_OF_LOG)
        found = await self._store.ladders.read_history(request.ladder, before_ms, size + 1)
        shown = frozenset(request.bots)
        points = []
        for at_ms, point in found[:size]:
            points.append(_point_message(at_ms, point, shown))
            await asyncio.sleep(0)  # a long page leaves room for other calls
        token = str(found[size - 1][0]) if len(found) > size else ""
        return pb.ListStandingsHistoryResponse(points=points, next_page_token=token)

    async def list_ladder_results(
        self, caller: Caller, request: pb.ListLadderResultsRequest
    ) -> pb.ListLadderResultsResponse:
        """See ladder_service.proto. A page token is the position of the last result shown."""
        meta = await self._get_meta(request.ladder)
        size = page_size(request.page_size)
        found = await self._read_results(request, size + 1, meta.final_results)
        return pb.ListLadderResultsResponse(
            results=[ladder_pb2.LadderResult(**result_fields(each)) for each in found[:size]],
            next_page_token=str(found[size - 1].seq) if len(found) > size else "",
        )

    async def reinstate_bot(self, caller: Caller, request: pb.ReinstateBotRequest) -> pb.ReinstateBotResponse:
        if not caller.is_operator and (not caller.bot or caller.bot != request.bot):
            why = "only the bot itself, or a token with the scope operate, may reinstate a bot"
            raise Refusal("NOT_ALLOWED", why)
        await self._get_meta(request.ladder)
        if await self._store.bots.get_bot(request.bot) is None:
            raise bot_not_found(request.bot)
        if not caller.is_operator:
            # The host of the ladder checks it once more by the log, so a call that comes too early changes nothing.
            off = (await self._store.ladders.ladders_off(request.bot)).get(request.ladder)
            if off is None:
                raise Refusal("NOT_ALLOWED", f"{request.bot} is not off {request.ladder}")
            if not off.back_ms or await now_ms(self._store.client) < off.back_ms:
                raise Refusal("NOT_ALLOWED", f"not yet: {request.bot} {off.reason}")
        await self._store.ladders.pardon_bot(request.ladder, request.bot, by_itself=not caller.is_operator)
        await self._store.ladders.let_back(request.bot, request.ladder)
        return pb.ReinstateBotResponse()

    async def _read_results(
        self, request: pb.ListLadderResultsRequest, count: int, final: int | None
    ) -> Sequence[LoggedResult]:
        log, last = self._store.results, _END_OF_LOG if final is None else final
        if request.newest_first:
            before = parse_position(request.page_token, _END_OF_LOG)
            return await log.read_back(request.ladder, min(before, last + 1), count)
        found = await log.read_results(request.ladder, parse_position(request.page_token), count)
        return [result for result in found if result.seq <= last]

    async def _get_meta(self, name: str) -> CompetitionMeta:
        return await _NAMES.find_resource(name, self._store.ladders.find)

    async def _get_message(self, name: str) -> ladder_pb2.Ladder:
        meta = await self._get_meta(name)
        ladder = Ladder.from_bytes(meta.settings)
        return ladder_pb2.Ladder(
            name=name,
            game=f"games/{ladder.game}",
            seats=ladder.seats,
            options=encode_options(ladder.options),
            time_control=encode_time_control(ladder.time_control),
            owners_together=ladder.owners_together,
            create_time=timestamp(meta.create_us),
            results=await self._store.results.count_results(name)
            if meta.final_results is None
            else meta.final_results,
            season=ladder.season,
            follows=ladder.follows,
            close_time=optional_timestamp(meta.close_ms),
        )


def _with_kind(line: ladder_pb2.Standing, kind: int) -> ladder_pb2.Standing:
    """Return the line with the kind of its bot; the line itself if nobody has said a kind, because it is shared."""
    if not kind:
        return line
    marked = ladder_pb2.Standing()
    marked.CopyFrom(line)
    marked.kind = cast("bot_pb2.BotKind", kind)
    return marked


def _parse_ladder(wanted: ladder_pb2.Ladder) -> Ladder:
    _NAMES.check_name(wanted.name, "ladder.name")
    game = parse_game(wanted.game)
    check_seats(game, wanted.seats, f"ladder.seats is {wanted.seats}", "ladder.seats")
    with refusing_bad_settings("ladder."):
        return Ladder(
            name=wanted.name,
            game=game,
            seats=wanted.seats,
            options=parse_options(game, wanted.options),
            time_control=parse_time_control(game, wanted.time_control),
            owners_together=wanted.owners_together,
            follows=wanted.follows,
        )


def _point_message(at_ms: int, point: bytes, bots: Collection[str]) -> pb.StandingsPoint:
    results, rows = decode_point(point)
    shown = [row for row in rows if row.bot in bots] if bots else rows[:MOST_SHOWN_UNASKED]
    standings = [ladder_pb2.Standing(**asdict(row)) for row in shown]
    return pb.StandingsPoint(time=timestamp(at_ms * 1000), results=results, standings=standings)
