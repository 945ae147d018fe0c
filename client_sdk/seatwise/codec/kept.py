"""Bytes of messages, written by hand and kept: for views, of which most parts are the same for long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_KEPT: Final = 1 << 13
"""How much of each kind to keep: twice that of what 400 matches of four seats have lying open at a time."""


class Kept(Generic[T]):
    """An encoder that remembers what it wrote of an object, by the object itself: to hash a table costs more.

    Holding the object keeps its id its own. Of two generations the older is forgotten when the younger
    is full, so what is in use stays.
    """

    __slots__ = ("_encode", "_old", "_young")

    def __init__(self, encode: Callable[[T], bytes]) -> None:
        self._encode = encode
        self._young: dict[int, tuple[T, bytes]] = {}
        self._old: dict[int, tuple[T, bytes]] = {}

    def __call__(self, thing: T) -> bytes:
        key = id(thing)
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key) or (thing, self._encode(thing))
            if len(self._young) >= _KEPT:
                self._old, self._young = self._young, {}
            self._young[key] = found
        return found[1]


def tag(number: int) -> bytes:
    """The key of a length-delimited field."""
    key = number << 3 | 2
    return bytes((key,)) if key < 128 else bytes((key & 127 | 128, key >> 7))


def part(key: bytes, body: bytes) -> bytes:
    """A message within a message; ours are all shorter than 128 bytes."""
    return key + bytes((len(body),)) + body
