"""Reads what a caller wants played: the game, its seats, its options and its time control; what is not said has its default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from seatwise.codec.time_control import requested_time_control
from seatwise.v1 import time_control_pb2
from seatwise_referee.game import BadOptions, Options
from seatwise_referee.games.registry import GAMES
from seatwise_referee.time_control import BadTimeControl, TimeControl
from seatwise_server.lobby.queue import time_control_for
from seatwise_server.refusal import Refusal


def parse_game(name: str) -> str:
    """Returns the game without its prefix; `Refusal` NOT_FOUND if there is none of that name."""
    game = name.removeprefix("games/")
    if game not in GAMES:
        known = ", ".join(f"games/{each}" for each in GAMES)
        raise Refusal("NOT_FOUND", f"there is no game {name[:80]!r}; there are {known}", game=name[:80])
    return game


def check_seats(game: str, seats: int, what: str) -> None:
    """Raises `Refusal` if the game is not for so many seats; `what` says what the caller asked for."""
    sizes = GAMES[game].table_sizes
    if seats not in sizes:
        raise Refusal("INVALID_ARGUMENT", f"{game} is for {sizes[0]} to {sizes[-1]} seats; {what}")


@contextmanager
def refusing_bad_settings() -> Iterator[None]:
    """Turns `BadOptions` and `BadTimeControl` inside this block into a `Refusal` with their sentence."""
    try:
        yield
    except (BadOptions, BadTimeControl) as bad:
        raise Refusal("INVALID_ARGUMENT", str(bad)) from None


def parse_options(game: str, given: Mapping[str, str]) -> Options:
    """Returns the game's options. They travel as text: what the game knows as a number becomes one. Or `BadOptions`."""
    defaults = GAMES[game].options({})
    return GAMES[game].options(
        {
            name: int(text) if isinstance(defaults.get(name), int) and _is_number(text) else text
            for name, text in given.items()
        }
    )


def _is_number(text: str) -> bool:
    return len(text) < 10 and text.removeprefix("-").isdecimal() and text.isascii()


def parse_time_control(game: str, asked: time_control_pb2.TimeControl) -> TimeControl:
    """Returns the time control that was asked for, or `BadTimeControl`."""
    return requested_time_control(asked, GAMES[game].paces, time_control_for(game))
