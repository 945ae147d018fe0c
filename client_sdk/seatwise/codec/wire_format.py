"""Writes parts of protobuf messages by hand. No other module of the product does.

A message is its fields one after the other. A field is a key and a value, and the key holds the field's number and its
wire type. So the bytes of a part that stays the same can be kept, and spliced into many messages. Field numbers come from
the generated classes (`View.HAND_FIELD_NUMBER`), so a changed proto cannot leave an old number behind.

The format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

VARINT: Final = 0
"""The wire type of numbers and of truth values."""

LENGTH_DELIMITED: Final = 2
"""The wire type of texts, bytes, messages and packed lists."""

_SHORT: Final = tuple(
    bytes((it,)) if it < 0x80 else bytes((it & 0x7F | 0x80, it >> 7)) for it in range(0x4000)
)
"""Varints of one or two bytes, written once: most lengths and milliseconds are so short."""


def encode_varint(number: int) -> bytes:
    """Return a number that is not negative as a varint."""
    if number < 0x4000:
        return _SHORT[number]
    return bytes((number & 0x7F | 0x80,)) + encode_varint(number >> 7)


def encode_number_key(number: int) -> bytes:
    """Return the key of a field that holds a number or a truth value."""
    return encode_varint(number << 3 | VARINT)


def encode_length_key(number: int) -> bytes:
    """Return the key of a field that holds a text, bytes, a message or a packed list."""
    return encode_varint(number << 3 | LENGTH_DELIMITED)


def encode_field(number: int, body: bytes) -> bytes:
    """Return a length-delimited field with this number."""
    return b"%b%b%b" % (_SHORT[number << 3 | LENGTH_DELIMITED], encode_varint(len(body)), body)


def encode_short_field(key: bytes, body: bytes) -> bytes:
    """Return a length-delimited field with this key."""
    return b"%b%b%b" % (key, encode_varint(len(body)), body)


def encode_packed(key: bytes, numbers: Iterable[int]) -> bytes:
    """Return a packed list of numbers from 0 to 127, at most 127 of them; nothing for an empty list."""
    body = bytes(numbers)
    return encode_short_field(key, body) if body else b""


T = TypeVar("T")

_KEPT: Final = 1 << 13
"""The number of parts to keep for each encoder: twice what 400 matches with four seats need at a time."""


class EncodedBytes(Generic[T]):
    """An encoder that keeps the bytes of each object, by the identity of the object. A hash of a whole table costs more.

    It holds the object too, so no other object gets the same id. There are two generations. When the younger one is
    full, the older one is dropped, so parts that are in use stay.
    """

    __slots__ = ("_encode", "_old", "_young")

    def __init__(self, encode: Callable[[T], bytes]) -> None:
        self._encode = encode
        self._young: dict[int, tuple[T, bytes]] = {}
        self._old: dict[int, tuple[T, bytes]] = {}

    def of(self, thing: T) -> bytes:
        """Return the bytes of this object."""
        key = id(thing)
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key) or (thing, self._encode(thing))
            if len(self._young) >= _KEPT:
                self._old, self._young = self._young, {}
            self._young[key] = found
        return found[1]
