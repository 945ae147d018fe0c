"""The wire as bytes, for a load client that must not be slower than what it loads.

Reads of a `PlayResponse` no more than a bot without a mind needs: whose it is, and what may be played.
"""

from __future__ import annotations

from dataclasses import dataclass

UPDATE, ACCEPTED, REJECTED, ENDED, PING = 4, 5, 6, 7, 8
"""Fields of `PlayResponseItem`."""

_ITEM = 0x0A
_VIEW = 16
_LEGAL_CARDS, _WON_CARDS = 9, 10


@dataclass(slots=True)
class Item:
    """One thing that a referee says."""

    match: bytes
    seat: int
    kind: int
    start: int
    end: int


def items(raw: bytes) -> list[Item]:
    """The items of a `PlayResponse`."""
    found, at = [], 0
    while at < len(raw):
        length, start = _varint(raw, at + 1)
        at = start + length
        found.append(_item(raw, start, at))
    return found


def _item(raw: bytes, at: int, end: int) -> Item:
    match, seat = b"", 0
    while at < end:
        key, at = _varint(raw, at)
        value, at = _varint(raw, at)
        number = key >> 3
        if number == 1:
            match = raw[at : at + value]
            at += value
        elif number == 2:
            seat = value
        elif number >= UPDATE:
            return Item(match, seat, number, at, at + value)
    raise ValueError("an item without an event")


def question(raw: bytes, item: Item) -> tuple[int, bytes, bool]:
    """Of an update: the prompt (0 if this seat is not asked), the cards on offer, and whether to arrange them."""
    at, end = item.start, item.end
    prompt, to_act = 0, False
    while at < end:
        key, at = _varint(raw, at)
        value, at = _varint(raw, at)
        number = key >> 3
        if number == 1:
            prompt = value
        elif number == 2:
            to_act = bool(value)
        elif number == _VIEW and to_act:
            cards, is_arrange = _cards(raw, at, at + value)
            return prompt, cards, is_arrange
        elif key & 7 == 2:
            at += value
    return 0, b"", False


def _cards(raw: bytes, at: int, end: int) -> tuple[bytes, bool]:
    while at < end:
        key, at = _varint(raw, at)
        value, at = _varint(raw, at)
        number = key >> 3
        if number in (_LEGAL_CARDS, _WON_CARDS):
            return raw[at : at + value], number == _WON_CARDS
        if key & 7 == 2:
            at += value
    return b"", False


def number(raw: bytes, item: Item) -> int:
    """Of a ping."""
    return _varint(raw, item.start + 1)[0] if item.end > item.start else 0


def head(match: bytes, seat: int) -> bytes:
    """The beginning of each item of a seat."""
    return b"\x0a%c%b" % (len(match), match) + (b"\x10%c" % seat if seat else b"")


def submit(head: bytes, request_id: bytes, prompt: int, cards: bytes, is_arrange: bool) -> bytes:
    """A `submit_move`, as an item of a `PlayRequest`."""
    move = b"\x12%c\x0a%c%b" % (len(cards) + 2, len(cards), cards) if is_arrange else b"\x08%b" % cards[:1]
    asked = b"\x10%b" % _as_varint(prompt)
    body = b"\x0a%c%b%b\x82\x01%c%b" % (len(request_id), request_id, asked, len(move), move)
    return in_request(head + b"\x22%c%b" % (len(body), body))


def pong(number: int) -> bytes:
    """A `pong`, as an item of a `PlayRequest`."""
    body = b"\x08" + _as_varint(number)
    return in_request(b"\x32%c%b" % (len(body), body))


def in_request(item: bytes) -> bytes:
    """The item as part of a `PlayRequest`."""
    return b"%c%b%b" % (_ITEM, _as_varint(len(item)), item)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    result, shift = byte & 0x7F, 7
    while byte >= 0x80:
        at += 1
        byte = data[at]
        result |= (byte & 0x7F) << shift
        shift += 7
    return result, at + 1


def _as_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
