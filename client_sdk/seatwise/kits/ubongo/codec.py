"""Encodes and decodes the views and moves of Ubongo.

Every number in a view is below 128, and so it is one byte. Therefore `encode_view` writes the bytes itself. A hand and the
layouts of the last round stay the same for a whole round, so their bytes are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from seatwise.codec.game_codec import (
    GameCodec,
    MalformedMove,
    MalformedView,
    check_length,
    check_seats,
    check_viewer,
)
from seatwise.codec.wire_format import (
    EncodedBytes,
    encode_length_key,
    encode_number_key,
    encode_packed,
    encode_short_field,
    encode_varint,
)
from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.v1.play_service_pb2 import Update
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import (
    BOUND,
    CALL,
    CARDS,
    HAND_SIZE,
    BuiltLayout,
    Call,
    Lay,
    Layout,
    OfferEnd,
    Placement,
    Side,
    UbongoCard,
    UbongoMove,
    UbongoView,
)
from seatwise_referee.games.ubongo.geometry import TURNS

SYMBOLS_OF_SIDE: Final = 6

_FROM_WIRE: Final[dict[int, UbongoCard]] = {number + 1: card for number, card in enumerate(CARDS)}
"""A card's number on the wire is one more than in the rules: 0 is what is not set."""

_ZIGZAG: Final = {
    number: number * 2 if number >= 0 else -2 * number - 1 for number in range(-BOUND, BOUND + 1)
}
"""How protobuf writes the numbers of an sint32: small ones of either sign are short."""


# The view, field by field as in ubongo.proto

_View = ubongo_pb2.View
_SEAT: Final = encode_number_key(_View.SEAT_FIELD_NUMBER)
_ROUND: Final = encode_number_key(_View.ROUND_FIELD_NUMBER)
_ROUNDS: Final = encode_number_key(_View.ROUNDS_FIELD_NUMBER)
_HAND: Final = encode_length_key(_View.HAND_FIELD_NUMBER)
_VIEW_SYMBOLS: Final = encode_length_key(_View.SYMBOLS_FIELD_NUMBER)
_LAYOUT: Final = encode_length_key(_View.LAYOUT_FIELD_NUMBER)
_LAID: Final = encode_length_key(_View.LAID_FIELD_NUMBER)
_BUILDING: Final = encode_length_key(_View.BUILDING_FIELD_NUMBER)
_OFFERS: Final = encode_length_key(_View.OFFERS_FIELD_NUMBER)
_OUT: Final = encode_length_key(_View.OUT_FIELD_NUMBER)
_POINTS: Final = encode_length_key(_View.POINTS_FIELD_NUMBER)
_LAST_ROUND: Final = encode_length_key(_View.LAST_ROUND_FIELD_NUMBER)
_ROUND_POINTS: Final = encode_length_key(ubongo_pb2.RoundPoints.POINTS_FIELD_NUMBER)
_BUILT_LAYOUT: Final = encode_length_key(ubongo_pb2.Built.LAYOUT_FIELD_NUMBER)
_BUILT_SYMBOLS: Final = encode_length_key(ubongo_pb2.Built.SYMBOLS_FIELD_NUMBER)
_BUILT_HAS_CALLED: Final = encode_number_key(ubongo_pb2.Built.HAS_CALLED_FIELD_NUMBER) + encode_varint(True)
_LAYOUT_CARDS: Final = encode_length_key(ubongo_pb2.Layout.CARDS_FIELD_NUMBER)
_XS: Final = encode_length_key(ubongo_pb2.Layout.XS_FIELD_NUMBER)
_YS: Final = encode_length_key(ubongo_pb2.Layout.YS_FIELD_NUMBER)
_LAYOUT_TURNS: Final = encode_length_key(ubongo_pb2.Layout.TURNS_FIELD_NUMBER)


def _encode_layout(key: bytes, layout: Layout) -> bytes:
    if not layout:
        return b""
    cards, xs, ys, turns = zip(*layout, strict=True)
    return encode_short_field(
        key,
        encode_packed(_LAYOUT_CARDS, [card + 1 for card in cards])
        + encode_packed(_XS, [_ZIGZAG[x] for x in xs])
        + encode_packed(_YS, [_ZIGZAG[y] for y in ys])
        + encode_packed(_LAYOUT_TURNS, turns),
    )


def _encode_symbols(key: bytes, sides: Sequence[Side]) -> bytes:
    text = "".join(side.symbols for side in sides)
    return encode_short_field(key, text.encode("ascii")) if text else b""


@EncodedBytes
def _encode_hand(hand: tuple[Side, ...]) -> bytes:
    return encode_packed(_HAND, [side.card + 1 for side in hand]) + _encode_symbols(_VIEW_SYMBOLS, hand)


@EncodedBytes
def _encode_last_round(built: tuple[BuiltLayout, ...]) -> bytes:
    return b"".join(map(_encode_built, built))


def _encode_built(built: BuiltLayout) -> bytes:
    body = _encode_layout(_BUILT_LAYOUT, built.layout) + _encode_symbols(_BUILT_SYMBOLS, built.sides)
    return encode_short_field(_LAST_ROUND, body + (_BUILT_HAS_CALLED if built.has_called else b""))


@EncodedBytes
def _encode_points(points: tuple[tuple[int, ...], ...]) -> bytes:
    return b"".join(encode_short_field(_POINTS, encode_packed(_ROUND_POINTS, each)) for each in points)


def encode_view(view: UbongoView) -> bytes:
    """Return the serialised `seatwise.games.ubongo.v1.View`."""
    return b"".join(
        (
            b"" if view.seat is None else _SEAT + encode_varint(view.seat),
            _ROUND + encode_varint(view.round) + _ROUNDS + encode_varint(view.rounds),
            _encode_hand.of(view.hand),
            _encode_layout(_LAYOUT, view.layout),
            encode_packed(_LAID, view.laid),
            encode_packed(_BUILDING, view.building),
            encode_packed(_OFFERS, view.offers),
            encode_packed(_OUT, view.out),
            _encode_points.of(view.points),
            _encode_last_round.of(view.last_round),
        )
    )


def decode_view(message: ubongo_pb2.View) -> UbongoView:
    """Return the view of a message. Raises `MalformedView`."""
    try:
        return _decode_fields(message)
    except MalformedMove as malformed:
        raise MalformedView(str(malformed)) from None


def _decode_fields(message: ubongo_pb2.View) -> UbongoView:
    return UbongoView(
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


def _decode_built(message: ubongo_pb2.Built) -> BuiltLayout:
    layout = _decode_layout("last_round.layout", message.layout)
    sides = _decode_sides("last_round.layout", message.layout.cards, message.symbols)
    return BuiltLayout(layout, sides, message.has_called)


def _decode_sides(where: str, numbers: Sequence[int], symbols: str) -> tuple[Side, ...]:
    if len(symbols) != SYMBOLS_OF_SIDE * len(numbers):
        wanted = SYMBOLS_OF_SIDE * len(numbers)
        raise MalformedView(f"{where}: {len(numbers)} cards have {wanted} symbols, not {len(symbols)}")
    return tuple(
        Side(card, symbols[SYMBOLS_OF_SIDE * place : SYMBOLS_OF_SIDE * (place + 1)])
        for place, card in enumerate(_decode_cards(where, numbers))
    )


def check_view(view: UbongoView, seat: int, seats: int) -> None:
    """Raise `MalformedView` if it is not the view of this seat of so many, or has no hand to build with."""
    check_viewer(view.seat, seat)
    check_length("laid", view.laid, seats)
    for points in view.points:
        check_length("points", points, seats)
    if view.last_round:
        check_length("last_round", view.last_round, seats)
    for field, named in (("building", view.building), ("offers", view.offers), ("out", view.out)):
        check_seats(field, named, seats)
    _check_layout(view)


def _check_layout(view: UbongoView) -> None:
    """Raise `MalformedView` if the hand is none, or other cards lie, or they lie where none can."""
    hand = {side.card for side in view.hand}
    if not len(hand) == len(view.hand) == HAND_SIZE:
        raise MalformedView(f"hand has {len(hand)} different cards; it must have {HAND_SIZE}")
    for card, x, y, turn in view.layout:
        if card not in hand or max(abs(x), abs(y)) > BOUND or not 0 <= turn < TURNS:
            raise MalformedView(f"layout has {card} at {x}, {y} with {turn} turns, where it cannot lie")


# Moves


def encode_layout(layout: Layout) -> ubongo_pb2.Layout:
    """Return the message of a layout."""
    return ubongo_pb2.Layout(
        cards=[each.card + 1 for each in layout],
        xs=[each.x for each in layout],
        ys=[each.y for each in layout],
        turns=[each.turn for each in layout],
    )


def encode_move(move: UbongoMove) -> ubongo_pb2.Move:
    """Return the message of a move. Raises `ValueError` for `Stop`, which only the referee plays."""
    match move:
        case Lay(layout):
            return ubongo_pb2.Move(lay=encode_layout(layout))
        case Call():
            return ubongo_pb2.Move(call=ubongo_pb2.Call())
        case OfferEnd(on):
            return ubongo_pb2.Move(offer_end=ubongo_pb2.OfferEnd(on=on))
    raise ValueError(f"{move!r} is no move of a bot")


def decode_move(message: ubongo_pb2.Move) -> UbongoMove:
    """Return the move of a message. Raises `MalformedMove`."""
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
    if max(lengths) > HAND_SIZE:
        raise MalformedMove(f"{where}: a hand has {HAND_SIZE} cards, and this layout names {max(lengths)}")
    if min(lengths) < max(lengths):
        told = "cards, xs, ys and turns have as many numbers each; they have"
        raise MalformedMove(f"{where}: {told} {', '.join(map(str, lengths))}")
    cards = _decode_cards(f"{where}.cards", message.cards)
    return tuple(map(Placement, cards, message.xs, message.ys, message.turns))


def _decode_cards(where: str, numbers: Sequence[int]) -> list[UbongoCard]:
    for place, number in enumerate(numbers):
        if number not in _FROM_WIRE:
            raise MalformedMove(f"{where}[{place}]: {number} is no card; they are 1 to {len(CARDS)}")
    return [_FROM_WIRE[number] for number in numbers]


CODEC: Final = GameCodec(
    "ubongo", Update.UBONGO_FIELD_NUMBER, encode_view, decode_view, check_view, encode_move, decode_move
)
