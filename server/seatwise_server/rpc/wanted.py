"""What callers want played: the game, its options, its limits; what is not said has its default."""

from __future__ import annotations

from collections.abc import Mapping

from seatwise.codec.time_control import requested_time_control
from seatwise.v1 import time_control_pb2
from seatwise_referee.clock import TimeControl
from seatwise_referee.game import Options
from seatwise_referee.games.registry import GAMES
from seatwise_server.lobby.queue import time_control_for
from seatwise_server.refusal import Refusal


def game_of(name: str) -> str:
    """The game, without its prefix; `Refusal` if there is none."""
    game = name.removeprefix("games/")
    if game not in GAMES:
        known = ", ".join(f"games/{each}" for each in GAMES)
        raise Refusal("NOT_FOUND", f"there is no game {name[:80]!r}; there are {known}", game=name[:80])
    return game


def check_seats(game: str, seats: int, what: str) -> None:
    """`Refusal` if the game is not for so many; `what` says what there is."""
    sizes = GAMES[game].table_sizes
    if seats not in sizes:
        raise Refusal("INVALID_ARGUMENT", f"{game} is for {sizes[0]} to {sizes[-1]} seats; {what}")


def options_of(game: str, given: Mapping[str, str]) -> Options:
    """Options travel as text; what the game knows as a number becomes one. Or `BadOptions`."""
    defaults = GAMES[game].options({})
    return GAMES[game].options(
        {
            name: int(text) if isinstance(defaults.get(name), int) and _is_number(text) else text
            for name, text in given.items()
        }
    )


def _is_number(text: str) -> bool:
    return len(text) < 10 and text.removeprefix("-").isdecimal() and text.isascii()


def limits_of(game: str, asked: time_control_pb2.TimeControl) -> TimeControl:
    """Or `BadTimeControl`."""
    return requested_time_control(asked, GAMES[game].paces, time_control_for(game))
