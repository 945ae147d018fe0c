"""The codec of one game: four functions, and the place of its messages in those that all games share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


class MalformedMove(ValueError):
    """The message is no move of this game. The text tells its sender why."""


class MalformedView(ValueError):
    """The message is no view of this game. A newer referee may have sent it."""


class MalformedResult(ValueError):
    """The message is no result of the match. The text says which field is wrong."""


class MalformedOffer(ValueError):
    """The message is no offer of a seat. The text says which field is wrong."""


@dataclass(frozen=True, slots=True)
class GameCodec:
    """How the views and moves of one game are encoded."""

    field: str
    """Its name in the oneofs `Update.view` and `SubmitMove.move`."""

    number: int
    """Its field number there."""

    encode_view: Callable[[Any], bytes]
    """Return the serialised view message, to be spliced into an update."""

    decode_view: Callable[[Any], Any]
    """Return the view of a view message. Raises `MalformedView`."""

    check_view: Callable[[Any, int, int], None]
    """Raise `MalformedView` if a view is not one that this seat of so many is asked with. A bot relies on its lists."""

    encode_move: Callable[[Any], Any]
    """Return the move message of a move."""

    decode_move: Callable[[Any], Any]
    """Return the move of a move message. Raises `MalformedMove`."""


def check_viewer(viewer: int | None, seat: int) -> None:
    """Raise `MalformedView` if the view is not this seat's."""
    if viewer != seat:
        raise MalformedView(f"it is the view of seat {viewer}")


def check_seats(field: str, named: Iterable[int], seats: int) -> None:
    """Raise `MalformedView` if there is no such seat."""
    for seat in named:
        if not 0 <= seat < seats:
            raise MalformedView(f"{field} names the seat {seat}, and there are {seats}")


def check_length(field: str, given: Sequence[object], seats: int) -> None:
    """Raise `MalformedView` if a list by seat is longer or shorter than there are seats."""
    if len(given) != seats:
        raise MalformedView(f"{field} has {len(given)} entries for {seats} seats")
