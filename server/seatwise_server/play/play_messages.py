"""Builds the items that a referee sends, as bytes.

An item is put together from parts that are serialised once and kept (its head; the public half of a
view), because writing is half of what a move costs. Protobuf allows it: the bytes of a message are
its fields one after the other.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import TYPE_CHECKING

from seatwise.codec import CODECS
from seatwise.v1 import play_service_pb2 as pb
from seatwise_server.counts import COUNTS

if TYPE_CHECKING:
    from seatwise_referee.match import SeatUpdate

LENGTH_DELIMITED = 2
REASONS = {name.removeprefix("REASON_"): number for name, number in pb.MoveRejected.Reason.items()}

_SHORT = tuple(bytes((it,)) if it < 0x80 else bytes((it & 0x7F | 0x80, it >> 7)) for it in range(0x4000))
"""Lengths and milliseconds are mostly of one or two bytes."""


def encode_varint(number: int) -> bytes:
    """A non-negative number as protobuf writes it."""
    if number < 0x4000:
        return _SHORT[number]
    return bytes((number & 0x7F | 0x80,)) + encode_varint(number >> 7)


def encode_field(number: int, body: bytes) -> bytes:
    """A length-delimited field: its key, its length, its bytes."""
    return b"%b%b%b" % (encode_varint(number << 3 | LENGTH_DELIMITED), encode_varint(len(body)), body)


_ITEM = pb.PlayResponse.ITEMS_FIELD_NUMBER
_UPDATE = pb.PlayResponseItem.UPDATE_FIELD_NUMBER
_ACCEPTED = pb.PlayResponseItem.MOVE_ACCEPTED_FIELD_NUMBER
_REJECTED = pb.PlayResponseItem.MOVE_REJECTED_FIELD_NUMBER
_ENDED = pb.PlayResponseItem.MATCH_ENDED_FIELD_NUMBER


def encode_head(match: str, seat: int, epoch: int) -> bytes:
    """The beginning of each item of one seat."""
    return pb.PlayResponseItem(match=match, seat=seat, epoch=epoch).SerializeToString()


def encode_response(items: Iterable[bytes]) -> bytes:
    """One message with these items."""
    return b"".join([encode_field(_ITEM, item) for item in items])


def encode_update(head: bytes, game: str, told: SeatUpdate, receipt: bytes) -> bytes:
    """What a seat sees and is asked."""
    view = b""
    if told.view is not None:
        codec = CODECS[game]
        view = encode_field(codec.number, codec.encode_view(told.view))
    asked = b"%b%b%b" % (
        b"\x08" + encode_varint(told.prompt) if told.prompt else b"",
        b"\x10\x01" if told.to_act else b"",
        encode_field(3, told.pace.encode()) if told.pace else b"",
    )
    return head + encode_field(
        _UPDATE, b"%b%b\x2a%c%b%b" % (asked, _encode_time(told), len(receipt), receipt, view)
    )


def _encode_time(told: SeatUpdate) -> bytes:
    """As `pb.Update.time`, in a third of the time that protobuf takes; proto3 leaves noughts out."""
    times = b"".join((
        b"\x08" + encode_varint(told.move_ms) if told.move_ms else b"",
        b"\x10" + encode_varint(told.bank_ms) if told.bank_ms else b"",
        b"\x18" + encode_varint(told.charged_ms) if told.charged_ms else b"",
        b"\x20" + encode_varint(told.allowance_ms) if told.allowance_ms else b"",
        b"\x28" + encode_varint(told.strikes) if told.strikes else b"",
    ))  # fmt: skip
    return b"\x22%c%b" % (len(times), times)


def encode_accepted(head: bytes, request_id: str, charged_ms: int, receipt: bytes) -> bytes:
    """The move stands."""
    charged = b"\x10" + encode_varint(charged_ms) if charged_ms else b""
    body = b"%b%b\x1a%c%b" % (encode_field(1, request_id.encode()), charged, len(receipt), receipt)
    return head + encode_field(_ACCEPTED, body)


def encode_rejected(head: bytes, request_id: str, reason: str, message: str) -> bytes:
    """Something does not stand."""
    COUNTS.rejections[reason] += 1
    body = pb.MoveRejected(request_id=request_id, reason=REASONS[reason], message=message)  # type: ignore[arg-type]
    return head + encode_field(_REJECTED, body.SerializeToString())


def encode_ended(head: bytes, end: pb.MatchEnded) -> bytes:
    """The match is over."""
    return head + encode_field(_ENDED, end.SerializeToString())


def encode_ping(number: int) -> bytes:
    """Measures the round trip."""
    return pb.PlayResponseItem(ping=pb.Ping(number=number)).SerializeToString()


def receipt_key(seed: bytes) -> bytes:
    """The key of a match's receipts: the same for every owner, known to no bot."""
    return hmac.digest(seed, b"receipt", "sha256")
