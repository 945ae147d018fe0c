"""Encodes and decodes the views and moves of games from outside, which are JSON."""

from __future__ import annotations

import json
from typing import Any, Final

from seatwise.codec.game_codec import GameCodec, MalformedMove, MalformedView, check_viewer
from seatwise.v1.json_payload_pb2 import JsonValue, JsonView
from seatwise.v1.play_service_pb2 import Update
from seatwise_referee.game import Seat
from seatwise_referee.hosted.drawing import LONGEST_DRAWING
from seatwise_referee.hosted.payload import (
    LONGEST_HOSTED_VIEW,
    LONGEST_MOVE,
    HostedMove,
    HostedView,
    encode_payload,
)


def encode_view(view: HostedView) -> bytes:
    """Return the serialised `seatwise.v1.JsonView`."""
    message = JsonView(
        data=JsonValue(json=view.text),
        legal_moves=[JsonValue(json=move) for move in view.legal],
        has_more_moves=view.has_more_moves,
        drawing=JsonValue(json=view.drawing) if view.drawing else None,
        says=view.says,
    )
    if view.seat is not None:
        message.seat = view.seat
    return message.SerializeToString()


def decode_view(message: JsonView) -> HostedView:
    """Return the view of a message. Raises `MalformedView`."""
    try:
        text = _canonical_text(message.data.json, LONGEST_HOSTED_VIEW)
        legal = tuple(_canonical_text(move.json, LONGEST_MOVE) for move in message.legal_moves)
        drawing = (
            _canonical_text(message.drawing.json, LONGEST_DRAWING) if message.HasField("drawing") else ""
        )
    except ValueError as wrong:
        raise MalformedView(f"the view is no JSON: {wrong}") from None
    if not text.startswith("{"):
        raise MalformedView("the view is no JSON object")
    seat = Seat(message.seat) if message.HasField("seat") else None
    return HostedView(seat, text, legal, message.has_more_moves, drawing, message.says)


def check_view(view: HostedView, seat: int, seats: int) -> None:  # noqa: ARG001  # as the codecs of other games
    """Raise `MalformedView` if it is not the view of this seat, or has nothing to choose from."""
    check_viewer(view.seat, seat)
    if not (view.legal or view.has_more_moves):
        raise MalformedView("there is no legal move to choose from")


def encode_move(move: HostedMove) -> JsonValue:
    """Return the message of a move."""
    return JsonValue(json=move.text)


def decode_move(message: JsonValue) -> HostedMove:
    """Return the move of a message. Raises `MalformedMove`."""
    try:
        return HostedMove(_canonical_text(message.json, LONGEST_MOVE))
    except ValueError as wrong:
        raise MalformedMove(f"the move is no JSON: {wrong}") from None


def _canonical_text(text: str, longest: int) -> str:
    """Return JSON in its canonical form. Raises `ValueError`."""
    if len(text) > 2 * longest:
        raise ValueError(f"it has {len(text)} characters; at most {longest} are allowed")
    try:
        value: Any = json.loads(text)
    except RecursionError:
        raise ValueError("it has too many brackets inside one another") from None
    return encode_payload(value, longest)


CODEC: Final = GameCodec(
    "json", Update.JSON_FIELD_NUMBER, encode_view, decode_view, check_view, encode_move, decode_move
)
