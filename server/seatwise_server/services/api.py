"""Creates all services, in the form in which every door serves them."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Collection
from dataclasses import replace
from typing import Any

from seatwise.v1 import game_service_pb2 as pb
from seatwise_referee.games.registry import GAMES
from seatwise_server.config import Config
from seatwise_server.lobby.seating import Seating
from seatwise_server.play.spectating import MatchWatcher
from seatwise_server.refusal import Refusal
from seatwise_server.services.access_tokens import AccessService
from seatwise_server.services.admin import AdminService
from seatwise_server.services.audit_trail import AuditTrail, audit_operation
from seatwise_server.services.authentication import Caller
from seatwise_server.services.bots import BotService
from seatwise_server.services.deal_sets import DealSetRegistry
from seatwise_server.services.ladders import LadderService
from seatwise_server.services.leagues import LeagueService
from seatwise_server.services.match_audit import MatchAudit
from seatwise_server.services.matches import MatchService
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.services.operations import Operation, operations_of
from seatwise_server.services.owners import OwnerRequests, OwnerService, OwnerWatches
from seatwise_server.services.read_budget import ReadBudget, ReadRates, cost_of_read, is_read
from seatwise_server.services.request_fields import bad_page_token, page_size
from seatwise_server.store import OwnerLimits, Store


def new_operations(
    store: Store,
    config: Config,
    durability: str,
    house_bots: Collection[str],
    owner_limits: OwnerLimits,
    trail: AuditTrail,
    open_streams: OpenStreams,
    wake_pairing: Callable[[], None],
    now: Callable[[], float],
) -> list[Operation]:
    """Return every unary and server-streaming operation of the API, working on this store.

    `durability` is what new matches say of the store ("fsync" or "loss-allowed"). `house_bots` are the resource names of the
    house bots. `owner_limits` are the quotas of owners that have none of their own. `trail` writes the audit log.
    `open_streams` ends watches whose token is taken away. `wake_pairing` is called when a created match waits for its bots.
    `now` returns seconds, by which reads and changes are limited.
    """
    seating = Seating(store, durability)
    sets = DealSetRegistry(store, config.keep_records_s)
    watcher = MatchWatcher(store, config.spectators)
    watches = OwnerWatches(store, owner_limits)
    budget = ReadBudget(ReadRates(config.reads_per_second, config.anonymous_reads_per_second), now)
    requests = OwnerRequests(store.owners, config.owner_requests_per_minute, now)
    operations = operations_of(
        {
            "seatwise.v1.AccessService": AccessService(store),
            "seatwise.v1.AdminService": AdminService(store, seating, MatchAudit(store)),
            "seatwise.v1.MatchService": MatchService(store, seating, wake_pairing, watcher, sets, watches),
            "seatwise.v1.BotService": BotService(store, seating, house_bots, config.registration),
            "seatwise.v1.OwnerService": OwnerService(store, config.registration, owner_limits),
            "seatwise.v1.GameService": GameService(),
            "seatwise.v1.LadderService": LadderService(store),
            "seatwise.v1.LeagueService": LeagueService(store),
        }
    )
    limited = [_limit_operation(it, budget, requests) for it in operations]
    return [audit_operation(_ending_with_token(it, open_streams), trail) for it in limited]


def _limit_operation(operation: Operation, budget: ReadBudget, requests: OwnerRequests) -> Operation:
    """Return the operation, which waits for its turn if it is a read, and counts for a quota if it is a change."""
    if not is_read(operation.method):
        return replace(operation, admit=requests.admit_request, show_limit=requests.show_limit)

    async def admit_read(caller: Caller, request: Any) -> None:
        await budget.admit_read(caller, cost_of_read(operation.method, request))

    return replace(operation, admit=admit_read, show_limit=budget.show_limit)


def _ending_with_token(operation: Operation, open_streams: OpenStreams) -> Operation:
    """Return the operation, whose streams end when the token is taken away that they were opened with."""
    if not operation.is_streaming:
        return operation

    @functools.wraps(operation.handle)
    def handle(caller: Caller, request: Any) -> AsyncGenerator[Any, None]:
        items: AsyncGenerator[Any, None] = operation.handle(caller, request)
        return open_streams.end_with_token(caller, items) if caller.token else items

    return replace(operation, handle=handle)


# The games that can be played


class GameService:
    """See game_service.proto. Everything that it returns follows from the rules."""

    async def list_games(self, caller: Caller, request: pb.ListGamesRequest) -> pb.ListGamesResponse:
        """See game_service.proto. A page token is the name of the last game shown."""
        if request.page_token and request.page_token not in GAMES:
            raise bad_page_token()
        names = [name for name in sorted(GAMES) if name > request.page_token]
        shown = names[: page_size(request.page_size)]
        token = shown[-1] if len(shown) < len(names) else ""
        return pb.ListGamesResponse(games=map(_game_message, shown), next_page_token=token)

    async def get_game(self, caller: Caller, request: pb.GetGameRequest) -> pb.GetGameResponse:
        name = request.name.removeprefix("games/")
        if name not in GAMES:
            raise Refusal("NOT_FOUND", f"there is no game {request.name[:80]!r}", game=request.name[:80])
        return pb.GetGameResponse(game=_game_message(name))


def _game_message(name: str) -> pb.Game:
    game = GAMES[name]
    return pb.Game(
        name=f"games/{name}",
        rules_version=game.rules_version,
        min_seats=game.table_sizes[0],
        max_seats=game.table_sizes[-1],
        paces=dict(game.paces),
        options={option: str(value) for option, value in game.complete_options({}).items()},
    )
