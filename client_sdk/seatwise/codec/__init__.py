"""The codec: it translates between the messages of the protocol and the types of the rules.

A game's codec is one value with both directions, because the two must be each other's inverse. The SDK uses one half, and
the server the other. What only the server sends is encoded there: offers and results in `seatwise_server.play`.
"""

from __future__ import annotations

from typing import Final

from seatwise.codec import ubongo, ugo
from seatwise.codec.errors import MalformedMove, MalformedView
from seatwise.codec.game_codec import GameCodec

CODECS: Final[dict[str, GameCodec]] = {"ugo": ugo.CODEC, "ubongo": ubongo.CODEC}
"""The codecs by the names of their games."""

__all__ = ["CODECS", "GameCodec", "MalformedMove", "MalformedView"]
