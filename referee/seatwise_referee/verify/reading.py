"""Reads a line of a file as a JSON object, which can be written in one way only."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final, NoReturn, TypeAlias

from seatwise_referee.journal import Moved, canonical_json
from seatwise_referee.verify.fault import BadRecord, quote_value

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
    texts, *values = (parts[group::stride] for group in range(1, stride))
    moves = [
        Moved(seq, at_ms, seat, prompt, move, asked_ms, allowance_ms, charged_ms, "")
        for allowance_ms, asked_ms, at_ms, charged_ms, move, prompt, seat, seq in zip(
            *map(_read_all, values), strict=True
        )
    ]
    return PLACE.join(parts[::stride]), texts, moves


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


def _read_all(texts: list[bytes]) -> list[Any]:
    """Return values of JSON, read all at once: that takes a third of the time."""
    values: list[Any] = json.loads(b"[%b]" % b",".join(texts))
    return values


MOST_BYTES = 16 * 1024 * 1024
"""The longest line that is read. No genuine record is nearly as long."""

MOST_DEPTH = 32
"""How deep lists and objects may be nested. A genuine record has eight levels. Deeper ones exhaust the stack of some readers."""

MOST_VALUES = 2**20
"""How many commas and opening brackets a record may have. An empty list takes three bytes here, and a hundred in memory."""

MOST_QUOTES = 2**22
"""How many quotes a record may have: a key and a text for each value. All others are escaped, or the line is no JSON."""

LARGEST = 2**53 - 1
"""The largest integer on which all languages agree."""

_JSON_TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""It never goes back, so that no line keeps it busy for long. A text without an end extends to the end of the line."""

_MANY_QUOTES = 2**17
"""With more quotes than that, to split a line at its quotes would take much memory. A genuine record has a tenth of them."""

_LONG_NUMBER = b"0" * len(str(LARGEST))
"""Shorter numbers are never beyond `LARGEST`. `json` reads them by itself in a fifth of the time."""

_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
"""With it a long number is found in a twentieth of the time that a regular expression takes (measured)."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DEPTH_STEPS = [1 if byte in b"[{" else -1 for byte in range(256)]


_MakeObject: TypeAlias = Callable[[list[tuple[str, Any]]], dict[str, Any]]


def read_line(line: str | bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the record in the line, and its entries as they are written there.

    Of the `entries` in the record, those that are plain moves are `Moved` already. Raises `BadRecord` if the line is no
    canonical JSON, or no object.
    """
    data = _as_bytes(line)
    if fault := _size_fault(data):
        raise BadRecord(f"is no record: {fault}")
    return _read_moves_apart(data) or _read_carefully(data)


def _read_moves_apart(data: bytes) -> tuple[dict[str, Any], list[bytes]] | None:
    """Return what nearly every line holds; `None` if there may be a fault.

    The moves are most of a line. They are read without JSON, which takes a third of the time, and the rest as any line.
    """
    if PLACE in data:
        return None
    rest, texts, moves = take_moves_out(data)
    outside = _without_texts(rest)
    record = None if _depth_fault(outside) else _parse_canonical(rest, outside)
    entries = record.get("entries") if record else None
    written = put_moves_back(entries, texts, moves) if isinstance(entries, list) else None
    return (record, written) if record and written else None


def _parse_canonical(data: bytes, outside: bytes) -> dict[str, Any] | None:
    """Return the object in a line without a fault; `None` if there may be a fault.

    A key that is twice in an object is written once, so such a line differs from what is written here. A function
    that looks at each object for it takes twice as long as the rest of `json`.
    """
    try:
        record = _parse_line(data, outside)
        if not isinstance(record, dict) or b"\\ud" in data:
            return None
        return record if canonical_json(record) == data else None
    except (BadRecord, RecursionError):
        return None


def _read_carefully(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the record in any line and its entries, and look for every fault in its order. Raises `BadRecord`."""
    outside = _without_texts(data)
    if fault := _depth_fault(outside):
        raise BadRecord(f"is no record: {fault}")
    try:
        record = _parse_line(data, outside, make_object=_make_object)
        written = canonical_json(record)
        if b"\\ud" in data:
            _check_letters(record)
    except RecursionError:
        raise BadRecord("is no record: its brackets are nested too deeply") from None
    if not isinstance(record, dict):
        raise BadRecord(f"is no record: a record is a JSON object, not {quote_value(record)}")
    if written != data:
        _refuse_spelling(data, written)
    entries = record.get("entries")
    return record, list(map(canonical_json, entries)) if isinstance(entries, list) else []


def _as_bytes(line: str | bytes) -> bytes:
    if len(line) > MOST_BYTES:
        raise BadRecord(f"is no record: longer than {MOST_BYTES} bytes")
    data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
    data = data.removesuffix(b"\n")
    if not data:
        raise BadRecord("is empty; each line is one record")
    if not data.isascii():
        place = next(place for place, byte in enumerate(data) if byte > 127)
        raise BadRecord(
            f"is not canonical JSON: byte {place} is not ASCII; other letters are written \\uXXXX"
        )
    return data


def nesting_fault(data: bytes) -> str:
    """Return why JSON would take too much memory or too deep a stack, without parsing it; "" if it would not."""
    return _size_fault(data) or _depth_fault(_without_texts(data))


def _size_fault(data: bytes) -> str:
    if len(data) <= MOST_VALUES:  # nearly always
        return ""
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES or data.count(b'"') > MOST_QUOTES:
        return f"it has more than {MOST_VALUES} values"
    return ""


def _depth_fault(outside: bytes) -> str:
    brackets = outside.translate(None, _NO_BRACKETS)
    if max(accumulate(map(_DEPTH_STEPS.__getitem__, brackets)), default=0) > MOST_DEPTH:
        return f"its brackets are nested too deeply, more than {MOST_DEPTH} times"
    return ""


def _without_texts(data: bytes) -> bytes:
    if b"\\" in data or data.count(b'"') > _MANY_QUOTES:
        return _JSON_TEXTS.sub(b"", data)
    return b"".join(data.split(b'"')[::2])  # without escapes every second part is a text; ten times as fast


def _parse_line(data: bytes, outside: bytes, *, make_object: _MakeObject | None = None) -> Any:
    has_long_number = _LONG_NUMBER in outside.translate(_DIGITS_TO_ZERO)
    try:
        return json.loads(
            data.decode("ascii"),
            object_pairs_hook=make_object,
            parse_int=_parse_whole_number if has_long_number else None,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
        )
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise BadRecord(f"is not JSON: {what} at byte {error.pos}") from None


def find_repeated_key(pairs: list[tuple[str, Any]]) -> str:
    """Return the first key that stands twice in a JSON object, of which one must."""
    return next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = quote_value(find_repeated_key(pairs))
        raise BadRecord(f"is not canonical JSON: the key {twice} stands twice in one object")
    return found


def _parse_whole_number(digits: str) -> int:
    if len(digits) > len(str(-LARGEST)) or abs(int(digits)) > LARGEST:
        raise BadRecord(f"is not canonical JSON: the number {quote_value(digits)} is beyond +-(2^53 - 1)")
    return int(digits)


def _check_letters(record: Any) -> None:
    """Check that no half of a surrogate pair is alone: it is no letter, and some languages cannot hold it."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise BadRecord(f"is not canonical JSON: {quote_value(half)} is half of a surrogate pair") from None


def _refuse_number(text: str) -> NoReturn:
    raise BadRecord(f"is not canonical JSON: {quote_value(text)} is not an integer")


def _refuse_spelling(data: bytes, written: bytes) -> NoReturn:
    """Raise `BadRecord` for the first place at which the line differs from canonical JSON."""
    pairs = zip(data, written, strict=False)
    shorter = min(len(data), len(written))
    place = next((place for place, (is_, should) in enumerate(pairs) if is_ != should), shorter)
    raise BadRecord(
        f"is not canonical JSON: at byte {place} stands {quote_value(data[place:][:20].decode())}, "
        f"where sorted keys without spaces give {quote_value(written[place:][:20].decode())}"
    )
