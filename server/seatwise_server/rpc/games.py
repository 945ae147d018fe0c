"""GameService: what can be played."""

from __future__ import annotations

from seatwise.v1 import game_service_pb2 as pb
from seatwise.v1 import game_service_pb2_grpc
from seatwise_referee.games.registry import GAMES
from seatwise_server.refusal import Refusal
from seatwise_server.rpc.keeper import Context
from seatwise_server.rpc.paging import page_size, strange_token


class GameDoor(game_service_pb2_grpc.GameServiceServicer):
    """See game_service.proto. Open to everybody: it tells nothing that the rules do not."""

    async def ListGames(self, request: pb.ListGamesRequest, context: Context) -> pb.ListGamesResponse:  # noqa: ARG002
        """See game_service.proto. A page token is the name of the last game shown."""
        if request.page_token and request.page_token not in GAMES:
            raise strange_token()
        names = [name for name in sorted(GAMES) if name > request.page_token]
        shown = names[: page_size(request.page_size)]
        token = shown[-1] if len(shown) < len(names) else ""
        return pb.ListGamesResponse(games=map(_game, shown), next_page_token=token)

    async def GetGame(self, request: pb.GetGameRequest, context: Context) -> pb.GetGameResponse:  # noqa: ARG002
        """See game_service.proto."""
        name = request.name.removeprefix("games/")
        if name not in GAMES:
            raise Refusal("NOT_FOUND", f"there is no game {request.name[:80]!r}", game=request.name[:80])
        return pb.GetGameResponse(game=_game(name))


def _game(name: str) -> pb.Game:
    game = GAMES[name]
    return pb.Game(
        name=f"games/{name}",
        rules_version=game.rules_version,
        min_seats=game.table_sizes[0],
        max_seats=game.table_sizes[-1],
        paces=dict(game.paces),
        options={option: str(value) for option, value in game.options({}).items()},
    )
