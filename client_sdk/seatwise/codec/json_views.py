"""Views as plain JSON, in the form of the API."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import MessageToDict

from seatwise.codec.game_codec import GameCodec
from seatwise.v1.play_service_pb2 import Update


def view_to_json(codec: GameCodec, view: Any) -> dict[str, Any]:
    """Return a view as plain values, as JSON has it at the REST door."""
    message = type(getattr(Update(), codec.field)).FromString(codec.encode_view(view))
    return dict(MessageToDict(message, always_print_fields_with_no_presence=True))
