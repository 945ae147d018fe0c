"""Builds what a bot says, good and bad."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import Any

from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.v1 import play_service_pb2

_numbers = itertools.count(1)


def item(match: str, seat: int, **action: Any) -> play_service_pb2.PlayRequestItem:
    """One thing to say: `sit=Sit()`, `submit_move=...`, `resign=Resign()`."""
    return play_service_pb2.PlayRequestItem(match=match, seat=seat, **action)


def message(items: Iterable[play_service_pb2.PlayRequestItem]) -> bytes:
    """One message with these items."""
    return play_service_pb2.PlayRequest(items=items).SerializeToString()


def field_of(number: int, body: bytes) -> bytes:
    """A length-delimited field with any bytes in it, good or bad."""
    return bytes([number << 3 | 2]) + _varint(len(body)) + body


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def submission(
    prompt: int, move: ugo_pb2.Move | None, request_id: str | None = None
) -> play_service_pb2.SubmitMove:
    """A move of UGO! for a prompt, with a new request id."""
    request_id = f"r{next(_numbers)}" if request_id is None else request_id
    return play_service_pb2.SubmitMove(request_id=request_id, prompt=prompt, ugo=move)


def legal_move(update: play_service_pb2.Update, chance: random.Random) -> ugo_pb2.Move:
    """Any legal answer to an open prompt."""
    if update.pace == "arrange":
        cards = list(update.ugo.won_cards)
        chance.shuffle(cards)
        return ugo_pb2.Move(arrange=ugo_pb2.Arrange(cards=cards))
    return ugo_pb2.Move(play=chance.choice(update.ugo.legal_cards))


def reason_name(rejected: play_service_pb2.MoveRejected) -> str:
    """Without its prefix."""
    return play_service_pb2.MoveRejected.Reason.Name(rejected.reason).removeprefix("REASON_")
