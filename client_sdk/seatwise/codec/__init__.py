"""The codec: it translates between the messages of the protocol and the types of the rules.

A game's codec is one value with both directions, because the two must be each other's inverse. The SDK uses one half, and
the server the other. The server itself encodes the messages that only it
sends, such as offers and results (`seatwise_server.play`).
"""

from __future__ import annotations

from seatwise.codec.game_codec import GameCodec, MalformedMove, MalformedView

__all__ = ["GameCodec", "MalformedMove", "MalformedView"]
