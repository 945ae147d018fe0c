"""The codec of one game: four functions, and the place of its messages in those that all games share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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
