"""MatchService: creates, shows, streams and ends matches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import fields

from google.protobuf.timestamp_pb2 import Timestamp

from seatwise.v1 import match_pb2, time_control_pb2
from seatwise.v1 import match_service_pb2 as pb
from seatwise_referee.ending import MatchState
from seatwise_referee.game import BadOptions, Options
from seatwise_referee.games.registry import GAMES, default_time_control
from seatwise_referee.setup import Setup
from seatwise_referee.time_control import BadTimeControl, TimeControl
from seatwise_server import resources
from seatwise_server.limits import SPECTATORS, Places
from seatwise_server.lobby.seating import CREATED, Seating, list_living
from seatwise_server.play.no_shows import ABSENT_BOTS
from seatwise_server.play.spectating import MatchWatcher
from seatwise_server.refusal import Refusal, bad_argument
from seatwise_server.resource_names import BadBotName, match_name_for, new_match_name, parse_bot_name
from seatwise_server.services.authentication import Caller
from seatwise_server.services.bots import bot_not_found
from seatwise_server.services.deal_sets import DealSetRegistry, WithheldResults
from seatwise_server.services.leagues import league_of
from seatwise_server.services.owners import OwnerWatches
from seatwise_server.services.request_fields import (
    LONGEST_REQUEST_ID,
    ResourceName,
    check_text,
    page_size,
    refusing_store_errors,
)
from seatwise_server.store import MatchMeta, Store, now_ms
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.matches import NEWEST_US, MatchFilter

# Parses the match that a caller asks for: game, seats, options and time control, with a default for all that is not set.


def parse_game(name: str) -> str:
    """Return the game's name without its prefix. Raises `Refusal` NOT_FOUND if there is none of that name."""
    game = name.removeprefix("games/")
    if game not in GAMES:
        known = ", ".join(f"games/{each}" for each in GAMES)
        if not name:
            raise bad_argument("game", f"game is required; there are {known}")
        raise Refusal("NOT_FOUND", f"there is no game {name[:80]!r}; there are {known}", game=name[:80])
    return game


def check_seats(game: str, seats: int, what: str, field: str) -> None:
    """Raise `Refusal` if the game cannot have this number of seats; `what` says what the caller asked for."""
    sizes = GAMES[game].table_sizes
    if seats not in sizes:
        raise bad_argument(field, f"{game} is for {sizes[0]} to {sizes[-1]} seats; {what}")


@contextmanager
def refusing_bad_settings(path: str = "") -> Iterator[None]:
    """Turn `BadOptions` and `BadTimeControl` inside this block into a `Refusal` with the same text.

    `path` is the field of the request with the settings, and a dot.
    """
    try:
        yield
    except (BadOptions, BadTimeControl) as bad:
        field = "options" if isinstance(bad, BadOptions) else "time_control"
        raise bad_argument(f"{path}{field}", str(bad)) from None


def parse_options(game: str, given: Mapping[str, str]) -> Options:
    """Return the game's options. Raises `BadOptions`.

    Options arrive as text: if the game's default is a number, the text is converted to one.
    """
    defaults, options = GAMES[game].complete_options({}), dict[str, int | str](given)
    for name, text in given.items():
        is_number = len(text) < 10 and text.removeprefix("-").isdecimal() and text.isascii()
        if is_number and isinstance(defaults.get(name), int):
            options[name] = int(text)
    return GAMES[game].complete_options(options)


def parse_time_control(game: str, asked: time_control_pb2.TimeControl) -> TimeControl:
    """Return the requested time control, with the game's default of each field that the request does not set.

    A free time of 0 means the default. Raises `BadTimeControl`.
    """
    base = default_time_control(game)
    if unknown := sorted(set(asked.free_ms) - set(base.free_ms)):
        paces = ", ".join(base.free_ms)
        why = f"free_ms names {unknown[0][:20]!r}, which is no pace of this game; its paces are {paces}"
        raise BadTimeControl(why)
    numbers = {name: getattr(asked if asked.HasField(name) else base, name) for name in _TIME_FIELDS}
    free_ms = {pace: asked.free_ms.get(pace, 0) or usual for pace, usual in base.free_ms.items()}
    return TimeControl(free_ms=free_ms, **numbers)


_TIME_FIELDS = tuple(each.name for each in fields(TimeControl) if each.name != "free_ms")


# Reads the filters of a list of matches.

_COMPETITIONS = (ResourceName("ladders", "ladder", "ladder"), ResourceName("leagues", "league", "league"))


def parse_match_filter(request: pb.ListMatchesRequest) -> MatchFilter:
    """Return the filter that a request asks for. Raises `Refusal` for an invalid value."""
    until_us = NEWEST_US
    if request.HasField("created_before"):
        until_us = _microseconds("created_before", request.created_before)
    return MatchFilter(
        bot=_parse_bot(request.bot),
        game=parse_game(request.game) if request.game else "",
        competition=_parse_competition(request.competition),
        state=_parse_state(request.state),
        since_us=max(0, _microseconds("created_from", request.created_from)),
        until_us=max(0, until_us),
    )


def _parse_bot(name: str) -> str:
    if name:
        try:
            parse_bot_name(name)
        except BadBotName as bad:
            raise bad_argument("bot", f"bot is {name[:80]!r}; {bad}") from None
    return name


def _parse_competition(name: str) -> str:
    if name and not any(form.is_valid(name) for form in _COMPETITIONS):
        message = f"competition is {name[:80]!r}; it must be the name of a ladder or of a league"
        raise bad_argument("competition", message)
    return name


def _parse_state(state: int) -> MatchState | None:
    if state == match_pb2.Match.STATE_UNSPECIFIED:
        return None
    try:
        return MatchState(match_pb2.Match.State.Name(state).removeprefix("STATE_"))
    except ValueError:
        raise bad_argument("state", f"state is {state}, which is no state of a match") from None


def _microseconds(field: str, time: Timestamp) -> int:
    try:
        return time.ToMicroseconds()
    except ValueError:
        raise bad_argument(field, f"{field} is not a time from the year 1 to 9999") from None


MOST_WAITING = 10_000
"""The most created matches that may wait for bots or tables."""


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
        self._wake_pairing = wake
        """Wakes the lobby of this process, if there is one, when a match waits."""
        self._watch = watch
        self._sets = sets
        self._withheld = WithheldResults(store)
        self._owner_watches = owner_watches
        self._spectators = Places(SPECTATORS)

    async def create_match(self, caller: Caller, request: pb.CreateMatchRequest) -> pb.CreateMatchResponse:
        if await self._store.queues.count_waiting(CREATED) >= MOST_WAITING:
            why = f"{MOST_WAITING} matches wait for their bots already; try again later"
            raise Refusal("SERVER_FULL", why, retry_after="10")
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
        match = await self._get_message(request.name)
        await self._withheld.withhold_from(caller, [match])
        return pb.GetMatchResponse(match=match)

    async def list_matches(self, caller: Caller, request: pb.ListMatchesRequest) -> pb.ListMatchesResponse:
        wanted, size = parse_match_filter(request), page_size(request.page_size)
        with refusing_store_errors():
            page = await self._store.matches.list_page(size, request.page_token, wanted)
        matches = [resources.match_resource(meta) for meta in page.matches]
        withheld = await self._withheld.withhold_from(caller, matches)
        return pb.ListMatchesResponse(
            matches=matches, next_page_token=page.next_page_token, withheld=withheld
        )

    async def get_record(self, caller: Caller, request: pb.GetRecordRequest) -> pb.GetRecordResponse:
        match = await self._get_message(request.name)
        if match.state == match_pb2.Match.STATE_VOIDED:
            why = f"{request.name} was voided ({match.void_reason}); it has no record"
            raise Refusal("MATCH_VOIDED", why)
        await self._sets.check_is_over(match)
        record = await self._store.matches.get_record(request.name)
        if not record:
            raise Refusal("MATCH_NOT_OVER", f"{request.name} is not over; its record can be read when it is")
        return pb.GetRecordResponse(record=record.decode().rstrip("\n"))

    async def abort_match(self, caller: Caller, request: pb.AbortMatchRequest) -> pb.AbortMatchResponse:
        match = await self._get_message(request.name)
        if not match.HasField("end_time"):
            absent = [match.bots[seat] for seat in request.absent_seats if 0 <= seat < len(match.bots)]
            why = f"{ABSENT_BOTS}{' '.join(absent)}" if absent else ""
            await self._seating.abort_match(request.name, why)
        return pb.AbortMatchResponse(match=match)

    async def get_deal_set(self, caller: Caller, request: pb.GetDealSetRequest) -> pb.GetDealSetResponse:
        return await self._sets.get_set(request.name)

    async def close_deal_set(
        self, caller: Caller, request: pb.CloseDealSetRequest
    ) -> pb.CloseDealSetResponse:
        return await self._sets.close_set(request.name)

    async def watch_match(
        self, caller: Caller, request: pb.WatchMatchRequest
    ) -> AsyncIterator[pb.WatchMatchResponse]:
        await self._sets.check_is_over(await self._get_message(request.name))
        following = self._watch.follow_match(request.name, has_all=request.all_positions)
        async with self._owner_watches.count_watch(caller), aclosing(following) as responses:
            with self._spectators.reserve_place():
                async for response in responses:
                    yield response

    async def _get_message(self, name: str) -> match_pb2.Match:
        return resources.match_resource(await self._get_meta(name))

    async def _get_meta(self, name: str) -> MatchMeta:
        meta = await self._store.matches.get_meta(name) if name.startswith("matches/") else None
        if meta is None or "setup" not in meta.fields:
            why = f"there is no match {name[:80]!r}, or it is no longer kept"
            raise Refusal("NOT_FOUND", why, name=name[:80])
        return meta

    async def _new_setup(self, request: pb.CreateMatchRequest) -> Setup:
        """Return the setup of the requested match, with a new seed. Raises `Refusal` if it cannot be played."""
        game = parse_game(request.game)
        check_seats(game, len(request.bots), f"{len(request.bots)} bots are named", "bots")
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
        """Return the league that the result counts for.

        Raises `Refusal` if it does not exist, or if one of the bots does not take part.
        """
        if not request.league:
            return ""
        meta = await self._store.leagues.find(request.league[:80])
        if meta is None:
            why = f"there is no league {request.league[:80]!r}"
            raise Refusal("NOT_FOUND", why, league=request.league[:80])
        if strange := sorted(set(request.bots) - set(league_of(meta).players)):
            raise bad_argument("bots", f"{strange[0][:80]} does not take part in {request.league}")
        return meta.name


def _match_name(request_id: str) -> str:
    check_text("request_id", request_id, LONGEST_REQUEST_ID)
    return match_name_for(request_id) if request_id else new_match_name()


# Finds a referee for a bot that asks for a match of which its gateway knows nothing: one that is over, for example.

REFEREE_KEPT_S = 1.0
"""The time for which an address that was found is used, in seconds."""


class LivingReferee:
    """The address of a referee that lives."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._address = ""
        self._until = 0.0

    async def find_address(self) -> str:
        """Return the address of the referee with the newest heartbeat; empty if none lives, or if it is the lobby's process."""
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            self._until = now + REFEREE_KEPT_S
            self._address = await self._read_address()
        return self._address

    async def _read_address(self) -> str:
        try:
            beats = await self._store.processes.read_heartbeats()
            living = list_living(list(beats.values()), await now_ms(self._store.client))
        except StoreUnavailable:
            return self._address
        return max(living, key=lambda beat: beat.beat_ms).address if living else ""
