"""From a line of a file to a JSON object, and not one byte of leeway."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import accumulate
from typing import Any, NoReturn

from seatwise_referee.journal import canonical_json
from seatwise_referee.verify.fault import BadRecord, quoted

MOST_BYTES = 16 * 1024 * 1024
"""No genuine record comes near it."""

MOST_DEPTH = 32
"""Lists and objects within one another; a genuine record has eight. Deeper ones end the stack of some reader."""

MOST_VALUES = 2**20
"""Commas and opening brackets in one record: an empty list takes three bytes here, and a hundred in memory."""

MOST_QUOTES = 2**22
"""For each value a key and a text; the rest is escaped, or no JSON."""

LARGEST = 2**53 - 1
"""Beyond it languages disagree about integers."""

_TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""It never goes back, so that no line keeps it busy for long. A text without an end reaches to the end of the line."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = [1 if byte in b"[{" else -1 for byte in range(256)]


def read(line: str | bytes) -> dict[str, Any]:
    """The record in the line, or `BadRecord`: not JSON, not an object, or not canonical."""
    data = _bytes(line)
    if fault := nesting_fault(data):
        raise BadRecord(f"is no record: {fault}")
    try:
        record = _parse(data)
        written = canonical_json(record)
        if b"\\ud" in data:
            _check_letters(record)
    except RecursionError:
        raise BadRecord("is no record: its brackets are nested too deeply") from None
    if not isinstance(record, dict):
        raise BadRecord(f"is no record: a record is a JSON object, not {quoted(record)}")
    if written != data:
        _refuse(data, written)
    return record


def _bytes(line: str | bytes) -> bytes:
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
    """Say why JSON would take too much memory or too deep a stack, without parsing it; "" if it would not."""
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES or data.count(b'"') > MOST_QUOTES:
        return f"it has more than {MOST_VALUES} values"
    brackets = _TEXTS.sub(b"", data).translate(None, _NO_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MOST_DEPTH:
        return f"its brackets are nested too deeply, more than {MOST_DEPTH} times"
    return ""


def _parse(data: bytes) -> Any:
    try:
        return json.loads(
            data.decode("ascii"),
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_float=_no_number,
            parse_constant=_no_number,
        )
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise BadRecord(f"is not JSON: {what} at byte {error.pos}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise BadRecord(f"is not canonical JSON: the key {quoted(twice)} stands twice in one object")
    return found


def _whole(digits: str) -> int:
    if len(digits) > len(str(-LARGEST)) or abs(int(digits)) > LARGEST:
        raise BadRecord(f"is not canonical JSON: the number {quoted(digits)} is beyond +-(2^53 - 1)")
    return int(digits)


def _check_letters(record: Any) -> None:
    """That no half of a surrogate pair stands alone: it is no letter, and not every language can hold it."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise BadRecord(f"is not canonical JSON: {quoted(half)} is half of a surrogate pair") from None


def _no_number(text: str) -> NoReturn:
    raise BadRecord(f"is not canonical JSON: {quoted(text)} is not an integer")


def _refuse(data: bytes, written: bytes) -> NoReturn:
    """Says where the line first differs from the one way to write it."""
    pairs = zip(data, written, strict=False)
    shorter = min(len(data), len(written))
    place = next((place for place, (is_, should) in enumerate(pairs) if is_ != should), shorter)
    raise BadRecord(
        f"is not canonical JSON: at byte {place} stands {quoted(data[place:][:20].decode())}, "
        f"where sorted keys without spaces give {quoted(written[place:][:20].decode())}"
    )
