"""The codecs of all games. Import this module only where messages are encoded or decoded, because it loads protobuf."""

from __future__ import annotations

from typing import Any, Final

from seatwise.codec.game_codec import GameCodec
from seatwise.kits import KITS, OWN_KITS
from seatwise.kits.hosted import codec as hosted
from seatwise.kits.hosted.kit import describe_json_view

CODECS: Final[dict[str, GameCodec]] = {name: kit.load_codec() for name, kit in KITS.items()}
"""The codecs by the names of their games. All games from outside share one."""


def describe_seen(field: str, message: Any) -> str:
    """Return a line of text for the view in this field of a `WatchMatchResponse`."""
    for kit in OWN_KITS:
        codec = CODECS[kit.name]
        if codec.field == field:
            return kit.describe_view(codec.decode_view(message))
    return describe_json_view(hosted.CODEC.decode_view(message))
