"""Ubongo on the wire: views and moves, there and back.

Every number in a view is below 128 and so one byte, therefore `encode_view` writes the bytes itself. A
hand, and what was laid in the last round, are the same for a whole round: their bytes are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from seatwise.codec.errors import MalformedMove, MalformedView
from seatwise.codec.kept import Kept, part, tag
from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import (
    BOUND,
    CALL,
    CARDS,
    HAND,
    Built,
    Call,
    Card,
    Lay,
    Layout,
    Move,
    OfferEnd,
    Placement,
    Side,
    View,
)

SYMBOLS: Final = 6

_FROM_WIRE: Final[dict[int, Card]] = {number + 1: card for number, card in enumerate(CARDS)}
"""A card's number on the wire is one more than in the rules: 0 is what is not set."""

_ZIGZAG: Final = {
    number: number * 2 if number >= 0 else -2 * number - 1 for number in range(-BOUND, BOUND + 1)
}
"""How protobuf writes the numbers of an sint32."""


# The view, field by field as in ubongo.proto

_HAND: Final = tag(4)
_SYMBOLS: Final = tag(5)
_LAYOUT: Final = tag(6)
_LAID: Final = tag(7)
_BUILDING: Final = tag(8)
_OFFERS: Final = tag(9)
_OUT: Final = tag(10)
_POINTS: Final = tag(11)
_LAST_ROUND: Final = tag(12)
_ROUND_POINTS: Final = tag(1)
_BUILT_LAYOUT: Final = tag(1)
_BUILT_SYMBOLS: Final = tag(2)
_CARDS: Final = tag(1)
_XS: Final = tag(2)
_YS: Final = tag(3)
_TURNS: Final = tag(4)


def _packed(key: bytes, numbers: Iterable[int]) -> bytes:
    """A packed list of numbers from 0 to 127."""
    body = bytes(numbers)
    return part(key, body) if body else b""


def _layout(key: bytes, layout: Layout) -> bytes:
    if not layout:
        return b""
    cards, xs, ys, turns = zip(*layout, strict=True)
    return part(
        key,
        _packed(_CARDS, [card + 1 for card in cards])
        + _packed(_XS, [_ZIGZAG[x] for x in xs])
        + _packed(_YS, [_ZIGZAG[y] for y in ys])
        + _packed(_TURNS, turns),
    )


def _symbols(key: bytes, sides: Sequence[Side]) -> bytes:
    text = "".join(side.symbols for side in sides)
    return part(key, text.encode("ascii")) if text else b""


@Kept
def _encode_hand(hand: tuple[Side, ...]) -> bytes:
    return _packed(_HAND, [side.card + 1 for side in hand]) + _symbols(_SYMBOLS, hand)


@Kept
def _encode_last_round(built: tuple[Built, ...]) -> bytes:
    return b"".join(map(_encode_built, built))


def _encode_built(built: Built) -> bytes:
    body = _layout(_BUILT_LAYOUT, built.layout) + _symbols(_BUILT_SYMBOLS, built.sides)
    return part(_LAST_ROUND, body + (b"\x18\x01" if built.has_called else b""))


@Kept
def _encode_points(points: tuple[tuple[int, ...], ...]) -> bytes:
    return b"".join(part(_POINTS, _packed(_ROUND_POINTS, each)) for each in points)


def encode_view(view: View) -> bytes:
    """The serialised `seatwise.games.ubongo.v1.View`."""
    return b"".join(
        (
            b"" if view.seat is None else b"\x08%c" % view.seat,
            b"\x10%c\x18%c" % (view.round, view.rounds),
            _encode_hand(view.hand),
            _layout(_LAYOUT, view.layout),
            _packed(_LAID, view.laid),
            _packed(_BUILDING, view.building),
            _packed(_OFFERS, view.offers),
            _packed(_OUT, view.out),
            _encode_points(view.points),
            _encode_last_round(view.last_round),
        )
    )


def decode_view(message: ubongo_pb2.View) -> View:
    """The view of a message, or `MalformedView`."""
    try:
        return _decoded_view(message)
    except MalformedMove as malformed:
        raise MalformedView(str(malformed)) from None


def _decoded_view(message: ubongo_pb2.View) -> View:
    return View(
        seat=Seat(message.seat) if message.HasField("seat") else None,
        round=message.round,
        rounds=message.rounds,
        hand=_decode_sides("hand", message.hand, message.symbols),
        layout=_decode_layout("layout", message.layout),
        laid=tuple(message.laid),
        building=tuple(map(Seat, message.building)),
        offers=tuple(map(Seat, message.offers)),
        out=tuple(map(Seat, message.out)),
        points=tuple(tuple(each.points) for each in message.points),
        last_round=tuple(map(_decode_built, message.last_round)),
    )


def _decode_built(message: ubongo_pb2.Built) -> Built:
    layout = _decode_layout("last_round.layout", message.layout)
    sides = _decode_sides("last_round.layout", message.layout.cards, message.symbols)
    return Built(layout, sides, message.has_called)


def _decode_sides(where: str, numbers: Sequence[int], symbols: str) -> tuple[Side, ...]:
    if len(symbols) != SYMBOLS * len(numbers):
        raise MalformedView(
            f"{where}: {len(numbers)} cards have {SYMBOLS * len(numbers)} symbols, not {len(symbols)}"
        )
    return tuple(
        Side(card, symbols[SYMBOLS * place : SYMBOLS * (place + 1)])
        for place, card in enumerate(_decode_cards(where, numbers))
    )


# Moves


def encode_layout(layout: Layout) -> ubongo_pb2.Layout:
    """The message of a layout."""
    return ubongo_pb2.Layout(
        cards=[each.card + 1 for each in layout],
        xs=[each.x for each in layout],
        ys=[each.y for each in layout],
        turns=[each.turn for each in layout],
    )


def encode_move(move: Move) -> ubongo_pb2.Move:
    """The message of a move; `ValueError` for `Stop`, which only the referee plays."""
    match move:
        case Lay(layout):
            return ubongo_pb2.Move(lay=encode_layout(layout))
        case Call():
            return ubongo_pb2.Move(call=ubongo_pb2.Call())
        case OfferEnd(on):
            return ubongo_pb2.Move(offer_end=ubongo_pb2.OfferEnd(on=on))
    raise ValueError(f"{move!r} is no move of a bot")


def decode_move(message: ubongo_pb2.Move) -> Move:
    """The move of a message, or `MalformedMove`."""
    kind = message.WhichOneof("kind")
    if kind == "lay":
        return Lay(_decode_layout("lay", message.lay))
    if kind == "call":
        return CALL
    if kind == "offer_end":
        return OfferEnd(message.offer_end.on)
    raise MalformedMove("the move is empty: set lay, call or offer_end")


def _decode_layout(where: str, message: ubongo_pb2.Layout) -> Layout:
    lists = (message.cards, message.xs, message.ys, message.turns)
    lengths = [len(each) for each in lists]
    if max(lengths) > HAND:
        raise MalformedMove(f"{where}: a hand has {HAND} cards, and this layout names {max(lengths)}")
    if min(lengths) < max(lengths):
        told = "cards, xs, ys and turns have as many numbers each; they have"
        raise MalformedMove(f"{where}: {told} {', '.join(map(str, lengths))}")
    cards = _decode_cards(f"{where}.cards", message.cards)
    return tuple(map(Placement, cards, message.xs, message.ys, message.turns))


def _decode_cards(where: str, numbers: Sequence[int]) -> list[Card]:
    return [_decode_card(number, where, place) for place, number in enumerate(numbers)]


def _decode_card(number: int, where: str, place: int) -> Card:
    card = _FROM_WIRE.get(number)
    if card is None:
        raise MalformedMove(f"{where}[{place}]: {number} is no card; they are 1 to {len(CARDS)}")
    return card
