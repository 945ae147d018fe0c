"""Reads the messages of a play stream item by item, so that an unreadable item does not affect the others."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError

from seatwise.codec.wire_format import LENGTH_DELIMITED
from seatwise.v1 import play_service_pb2 as pb

ITEMS_PER_TURN = 32
"""Items that are handled before other tasks run. A message full of the smallest items would block them for a second."""

_ITEM_KEY = pb.PlayRequest.ITEMS_FIELD_NUMBER << 3 | LENGTH_DELIMITED


class UnreadableItem(ValueError):
    """The bytes are not an item."""


def read_items(raw: bytes) -> Iterator[pb.PlayRequestItem | None]:
    """Yields the items of a message in their order, and `None` for each that cannot be read."""
    try:
        yield from pb.PlayRequest.FromString(raw).items
    except DecodeError:
        yield from _read_one_by_one(raw)


def _read_one_by_one(raw: bytes) -> Iterator[pb.PlayRequestItem | None]:
    """Reads the outermost fields one by one. After a field that cannot be read, the rest of the message is lost."""
    rest = memoryview(raw)
    while rest:
        try:
            key, rest = _read_varint(rest)
            length, rest = _read_varint(rest)
            if key != _ITEM_KEY or length > len(rest):
                raise UnreadableItem
            body, rest = rest[:length], rest[length:]
        except UnreadableItem:
            yield None
            return
        yield _parse_item(bytes(body))


def _parse_item(body: bytes) -> pb.PlayRequestItem | None:
    try:
        return pb.PlayRequestItem.FromString(body)
    except DecodeError:
        return None


def _read_varint(data: memoryview) -> tuple[int, memoryview]:
    number = 0
    for index, byte in enumerate(data[:10]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, data[index + 1 :]
    raise UnreadableItem
