"""Keeps the encoded bytes of parts of views, because most parts stay the same for many views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

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

    def __call__(self, thing: T) -> bytes:
        key = id(thing)
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key) or (thing, self._encode(thing))
            if len(self._young) >= _KEPT:
                self._old, self._young = self._young, {}
            self._young[key] = found
        return found[1]
