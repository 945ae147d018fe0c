"""The codecs of all games. Import this module only where messages are encoded or decoded, because it loads protobuf."""

from __future__ import annotations

from typing import Final

from seatwise.codec.game_codec import GameCodec
from seatwise.kits import KITS

CODECS: Final[dict[str, GameCodec]] = {name: kit.load_codec() for name, kit in KITS.items()}
"""The codecs by the names of their games."""
