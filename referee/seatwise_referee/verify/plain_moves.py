"""Reads the moves of a record without JSON, where they are written as nearly all are."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

from seatwise_referee.game import Json, Seat
from seatwise_referee.journal import Moved, canonical_json

PLACE_TEXT: Final = "a move was here"
PLACE: Final = b'"%b"' % PLACE_TEXT.encode()
"""Takes the place of a move in the line. A line that has this text itself is read as a whole."""

_MOVE_NUMBER: Final = rb"(0|[1-9][0-9]{0,14})"
"""A whole number without a sign. With so few digits it is on no side beyond the largest one."""
_MOVE_COUNT: Final = rb"([1-9][0-9]{0,14})"
_MOVE_TEXT: Final = rb'"[0-9A-Za-z]{0,20}"'
_MOVE: Final = rb'(\{"[a-z]{1,20}":(?:%b|\[%b(?:,%b){0,9}\])\})' % (_MOVE_TEXT, _MOVE_TEXT, _MOVE_TEXT)
_PLAIN_MOVE: Final = re.compile(
    rb'(\{"allowance_ms":%b,"asked_ms":%b,"at_ms":%b,"charged_ms":%b,"kind":"move","move":%b,"prompt":%b,"seat":%b,"seq":%b\})'
    % (_MOVE_NUMBER, _MOVE_NUMBER, _MOVE_NUMBER, _MOVE_NUMBER, _MOVE, _MOVE_COUNT, _MOVE_NUMBER, _MOVE_COUNT)
)
"""An entry `move` that is canonical JSON, has all its keys and no other, and numbers in their ranges.

Its groups are the entry and its values. No text contains it, because a text has no quotes without a backslash before them.
"""


def take_moves_out(line: bytes) -> tuple[bytes, list[bytes], list[Moved]]:
    """Return the line with `PLACE` in the place of each plain move, the moves as they are written, and the moves."""
    parts = _PLAIN_MOVE.split(line)
    stride = _PLAIN_MOVE.groups + 1
    texts, allowances, asked, at, charged, moves, prompts, seats, seqs = (
        parts[group::stride] for group in range(1, stride)
    )
    numbers = map(_read_numbers, (seqs, at, seats, prompts, asked, allowances, charged))
    return PLACE.join(parts[::stride]), texts, list(map(_new_move, map(_load_move, moves), *numbers))


def put_moves_back(entries: list[Any], texts: list[bytes], moves: list[Moved]) -> list[bytes] | None:
    """Put the moves into the entries, and return how each entry is written.

    Returns `None` if not each move was an entry: one was inside of something else, and the line must be read as a whole.
    """
    places = [place for place, entry in enumerate(entries) if entry == PLACE_TEXT]
    if len(places) != len(moves):
        return None
    written = [b"" if entry == PLACE_TEXT else canonical_json(entry) for entry in entries]
    for place, text, move in zip(places, texts, moves, strict=True):
        written[place], entries[place] = text, move
    return written


def _read_numbers(texts: list[bytes]) -> list[int]:
    """Return whole numbers, read all at once: that takes a third of the time."""
    numbers: list[int] = json.loads(b"[%b]" % b",".join(texts))
    return numbers


def _new_move(
    move: Json,
    seq: int,
    at_ms: int,
    seat: int,
    prompt: int,
    asked_ms: int,
    allowance_ms: int,
    charged_ms: int,
) -> Moved:
    return Moved(
        seq=seq,
        at_ms=at_ms,
        seat=Seat(seat),
        prompt=prompt,
        move=move,
        asked_ms=asked_ms,
        allowance_ms=allowance_ms,
        charged_ms=charged_ms,
        request_id="",
    )


@lru_cache(maxsize=1024)  # a game has few cards; nobody changes the JSON of an entry
def _load_move(text: bytes) -> Json:
    move: Json = json.loads(text)
    return move
