"""The one codec between the wire and the rules' own types, used by both its ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seatwise.codec import ubongo, ugo
from seatwise.codec.errors import MalformedMove, MalformedView


@dataclass(frozen=True, slots=True)
class GameCodec:
    """How one game's views and moves travel."""

    field: str
    """Its name in the oneofs `Update.view` and `SubmitMove.move`."""

    number: int
    """Its field number there."""

    encode_view: Callable[[Any], bytes]
    """The serialised view message, to be spliced into an update."""

    decode_view: Callable[[Any], Any]
    """The view of a view message, or `MalformedView`."""

    encode_move: Callable[[Any], Any]
    """The move message of a move."""

    decode_move: Callable[[Any], Any]
    """The move of a move message, or `MalformedMove`."""


CODECS: dict[str, GameCodec] = {
    "ugo": GameCodec("ugo", 16, ugo.encode_view, ugo.decode_view, ugo.encode_move, ugo.decode_move),
    "ubongo": GameCodec(
        "ubongo", 17, ubongo.encode_view, ubongo.decode_view, ubongo.encode_move, ubongo.decode_move
    ),
}
"""By the game's name."""

__all__ = ["CODECS", "GameCodec", "MalformedMove", "MalformedView"]
