"""Parses the match that a caller asks for: game, seats, options and time control, with a default for all that is not set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields

from seatwise.v1 import time_control_pb2
from seatwise_referee.game import BadOptions, Options
from seatwise_referee.games.registry import GAMES, default_time_control
from seatwise_referee.time_control import BadTimeControl, TimeControl
from seatwise_server.refusal import Refusal


def parse_game(name: str) -> str:
    """Returns the game's name without its prefix. Raises `Refusal` NOT_FOUND if there is none of that name."""
    game = name.removeprefix("games/")
    if game not in GAMES:
        known = ", ".join(f"games/{each}" for each in GAMES)
        if not name:
            raise Refusal("INVALID_ARGUMENT", f"game is required; there are {known}", field="game")
        raise Refusal("NOT_FOUND", f"there is no game {name[:80]!r}; there are {known}", game=name[:80])
    return game


def check_seats(game: str, seats: int, what: str) -> None:
    """Raises `Refusal` if the game cannot have this number of seats; `what` says what the caller asked for."""
    sizes = GAMES[game].table_sizes
    if seats not in sizes:
        raise Refusal("INVALID_ARGUMENT", f"{game} is for {sizes[0]} to {sizes[-1]} seats; {what}")


@contextmanager
def refusing_bad_settings() -> Iterator[None]:
    """Turns `BadOptions` and `BadTimeControl` inside this block into a `Refusal` with the same text."""
    try:
        yield
    except (BadOptions, BadTimeControl) as bad:
        raise Refusal("INVALID_ARGUMENT", str(bad)) from None


def parse_options(game: str, given: Mapping[str, str]) -> Options:
    """Returns the game's options. Raises `BadOptions`.

    Options arrive as text: if the game's default is a number, the text is converted to one.
    """
    defaults = GAMES[game].complete_options({})
    return GAMES[game].complete_options(
        {
            name: int(text) if isinstance(defaults.get(name), int) and _is_number(text) else text
            for name, text in given.items()
        }
    )


def _is_number(text: str) -> bool:
    return len(text) < 10 and text.removeprefix("-").isdecimal() and text.isascii()


def parse_time_control(game: str, asked: time_control_pb2.TimeControl) -> TimeControl:
    """Returns the requested time control, completed by the defaults of the game. Raises `BadTimeControl`."""
    return complete_time_control(asked, GAMES[game].paces, default_time_control(game))


def complete_time_control(
    asked: time_control_pb2.TimeControl, paces: Mapping[str, int], default: TimeControl | None = None
) -> TimeControl:
    """Returns the requested time control, with the default of each field that the request does not set.

    `paces` are those of the game, with their default free times in milliseconds. A free time of 0 means the
    default. Raises `BadTimeControl`.
    """
    unknown = sorted(set(asked.free_ms) - set(paces))
    if unknown:
        raise BadTimeControl(
            f"free_ms names {unknown[0][:20]!r}, which is no pace of this game; its paces are {', '.join(paces)}"
        )
    base = default or TimeControl()
    numbers = {name: getattr(asked if asked.HasField(name) else base, name) for name in _TIME_FIELDS}
    free_ms = {
        pace: asked.free_ms.get(pace, 0) or base.free_ms.get(pace, usual) for pace, usual in paces.items()
    }
    return TimeControl(free_ms=free_ms, **numbers)


_TIME_FIELDS = tuple(each.name for each in fields(TimeControl) if each.name != "free_ms")
