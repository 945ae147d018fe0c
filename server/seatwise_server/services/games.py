"""GameService: lists the games that can be played."""

from __future__ import annotations

from seatwise.v1 import game_service_pb2 as pb
from seatwise_referee.games.registry import GAMES
from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import Caller
from seatwise_server.services.request_fields import bad_page_token, page_size


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
