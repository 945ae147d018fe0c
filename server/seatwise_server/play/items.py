"""Builds the items that a referee sends, as bytes.

An item is put together from parts that are serialised once and kept (its head; the public half of a
view), because writing is half of what a move costs. Protobuf allows it: the bytes of a message are
its fields one after the other.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

from seatwise.codec import CODECS
from seatwise.v1 import play_service_pb2 as pb
from seatwise_server.counts import COUNTS

if TYPE_CHECKING:
    from seatwise_referee.match import Update

LENGTH_DELIMITED = 2
RECEIPT_BYTES = 16
REASONS = {name.removeprefix("REASON_"): number for name, number in pb.MoveRejected.Reason.items()}

_ONE_BYTE = tuple(bytes((number,)) for number in range(0x80))


def varint(number: int) -> bytes:
    """A non-negative number as protobuf writes it."""
    if number < 0x80:
        return _ONE_BYTE[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    return bytes((number & 0x7F | 0x80,)) + varint(number >> 7)


def field(number: int, body: bytes) -> bytes:
    """A length-delimited field: its key, its length, its bytes."""
    return b"%b%b%b" % (varint(number << 3 | LENGTH_DELIMITED), varint(len(body)), body)


_ITEM = pb.PlayResponse.ITEMS_FIELD_NUMBER
_UPDATE = pb.PlayResponseItem.UPDATE_FIELD_NUMBER
_ACCEPTED = pb.PlayResponseItem.MOVE_ACCEPTED_FIELD_NUMBER
_REJECTED = pb.PlayResponseItem.MOVE_REJECTED_FIELD_NUMBER
_ENDED = pb.PlayResponseItem.MATCH_ENDED_FIELD_NUMBER


def head(match: str, seat: int, epoch: int) -> bytes:
    """The beginning of each item of one seat."""
    return pb.PlayResponseItem(match=match, seat=seat, epoch=epoch).SerializeToString()


def response(items: Iterable[bytes]) -> bytes:
    """One message with these items."""
    return b"".join([field(_ITEM, item) for item in items])


def update(head: bytes, game: str, told: Update, receipt: bytes) -> bytes:
    """What a seat sees and is asked."""
    body = pb.Update(
        prompt=told.prompt,
        to_act=told.to_act,
        pace=told.pace,
        time=pb.TimeLeft(
            move_ms=told.move_ms,
            bank_ms=told.bank_ms,
            charged_ms=told.charged_ms,
            latency_ms=told.allowance_ms,
            strikes=told.strikes,
        ),
        receipt=receipt,
    ).SerializeToString()
    if told.view is not None:
        codec = CODECS[game]
        body += field(codec.number, codec.encode_view(told.view))
    return head + field(_UPDATE, body)


def accepted(head: bytes, request_id: str, charged_ms: int, receipt: bytes) -> bytes:
    """The move stands."""
    body = pb.MoveAccepted(request_id=request_id, charged_ms=charged_ms, receipt=receipt)
    return head + field(_ACCEPTED, body.SerializeToString())


def rejected(head: bytes, request_id: str, reason: str, message: str) -> bytes:
    """Something does not stand."""
    COUNTS.rejections[reason] += 1
    body = pb.MoveRejected(request_id=request_id, reason=REASONS[reason], message=message)  # type: ignore[arg-type]
    return head + field(_REJECTED, body.SerializeToString())


def ended(head: bytes, end: pb.MatchEnded) -> bytes:
    """The match is over."""
    return head + field(_ENDED, end.SerializeToString())


def ping(number: int) -> bytes:
    """Measures the round trip."""
    return pb.PlayResponseItem(ping=pb.Ping(number=number)).SerializeToString()


def receipt_key(seed: bytes) -> bytes:
    """The key of a match's receipts: the same for every owner, known to no bot."""
    return hmac.digest(seed, b"receipt", "sha256")


def receipt(key: bytes, seq: int) -> bytes:
    """Proves that entry `seq` was in the journal, and tells nothing else: not even the number.

    Two of them go out for each move. Keyed BLAKE2 is made for this; an HMAC by OpenSSL costs three times as much.
    """
    return blake2b(b"%d" % seq, key=key, digest_size=RECEIPT_BYTES).digest()
