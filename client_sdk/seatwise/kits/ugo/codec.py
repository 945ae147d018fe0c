"""Encodes and decodes the views and moves of UGO!.

The server encodes a view for every question that it asks, so `encode_view` writes the bytes itself. Every number in a
view except the points is below 128, and so it is one byte. The open cards change once a trick and are the same for all
seats, so their bytes are kept. Field by field through protobuf a view takes about 100 microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Any, Final

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
    encode_short_field,
    encode_varint,
)
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.v1.play_service_pb2 import Update
from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import CARDS, Arrange, Kingdom, Play, Trick, UgoCard, UgoMove, UgoView
from seatwise_referee.games.ugo.kingdoms import EMPTY_KINGDOM, MOST_FARMERS
from seatwise_referee.games.ugo.moves import PLAYS

# Cards

_TO_WIRE: Final = bytes(min(number + 1, 255) for number in range(256))
"""A card's number on the wire is one more than in the rules: 0 is taken by CARD_UNSPECIFIED."""

_FROM_WIRE: Final[dict[int, UgoCard]] = {number + 1: card for number, card in enumerate(CARDS)}


_KNOWN_PARTS: Final = 1 << 13
"""The number of decoded tricks, and of kingdoms, to remember: more than the bots of one process need in 250 matches at once."""


_LONGEST_PART: Final = 256
"""The most bytes of a trick or a kingdom: twice those of all cards."""


def _encode_cards(key: bytes, cards: tuple[UgoCard, ...]) -> bytes:
    """Return a packed list of cards; nothing for an empty list."""
    return key + encode_varint(len(cards)) + bytes(cards).translate(_TO_WIRE) if cards else b""


# The view, field by field as in ugo.proto

_View = ugo_pb2.View
_SEAT: Final = encode_number_key(_View.SEAT_FIELD_NUMBER)
_ROUND: Final = encode_number_key(_View.ROUND_FIELD_NUMBER)
_ROUNDS: Final = encode_number_key(_View.ROUNDS_FIELD_NUMBER)
_STARTER: Final = encode_number_key(_View.STARTER_FIELD_NUMBER)
_HAND: Final = encode_length_key(_View.HAND_FIELD_NUMBER)
_HAND_SIZES: Final = encode_length_key(_View.HAND_SIZES_FIELD_NUMBER)
_LEADER: Final = encode_number_key(_View.LEADER_FIELD_NUMBER)
_TRICK: Final = encode_length_key(_View.TRICK_FIELD_NUMBER)
_LEGAL_CARDS: Final = encode_length_key(_View.LEGAL_CARDS_FIELD_NUMBER)
_WON_CARDS: Final = encode_length_key(_View.WON_CARDS_FIELD_NUMBER)
_ARRANGER: Final = encode_number_key(_View.ARRANGER_FIELD_NUMBER)
_KINGDOMS: Final = encode_length_key(_View.KINGDOMS_FIELD_NUMBER)
_SUPPLY: Final = encode_number_key(_View.SUPPLY_FIELD_NUMBER)
_POINTS: Final = encode_length_key(_View.POINTS_FIELD_NUMBER)
_TRICKS: Final = encode_length_key(_View.TRICKS_FIELD_NUMBER)
_LAST_ROUND: Final = encode_length_key(_View.LAST_ROUND_FIELD_NUMBER)
_SECTIONS: Final = encode_length_key(ugo_pb2.Kingdom.SECTIONS_FIELD_NUMBER)
_KINGDOM_FARMERS: Final = encode_number_key(ugo_pb2.Kingdom.FARMERS_FIELD_NUMBER)
_SECTION_CARDS: Final = encode_length_key(ugo_pb2.Section.CARDS_FIELD_NUMBER)
_TRICK_LEADER: Final = encode_number_key(ugo_pb2.Trick.LEADER_FIELD_NUMBER)
_TRICK_CARDS: Final = encode_length_key(ugo_pb2.Trick.CARDS_FIELD_NUMBER)
_TRICK_WINNER: Final = encode_number_key(ugo_pb2.Trick.WINNER_FIELD_NUMBER)
_TRICK_LAID: Final = encode_length_key(ugo_pb2.Trick.LAID_FIELD_NUMBER)


def _encode_trick(trick: Trick) -> bytes:
    """Leave the key out: the same trick belongs to this round first, and to the last round later."""
    cards, laid = _encode_cards(_TRICK_CARDS, trick.cards), _encode_cards(_TRICK_LAID, trick.laid)
    leader, winner = encode_varint(trick.leader), encode_varint(trick.winner)
    return encode_short_field(b"", b"".join((_TRICK_LEADER, leader, cards, _TRICK_WINNER, winner, laid)))


def _encode_tricks(tricks: tuple[Trick, ...], key: bytes = _TRICKS) -> bytes:
    return key + key.join([_TRICK_BYTES.of(trick) for trick in tricks]) if tricks else b""


def _encode_sections(sections: tuple[tuple[UgoCard, ...], ...]) -> bytes:
    """Encode the stacks alone: most tricks bring a kingdom farmers, and few bring it cards."""
    stacks = [encode_short_field(_SECTIONS, _encode_cards(_SECTION_CARDS, stack)) for stack in sections]
    return b"".join(stacks)


def _encode_kingdom(kingdom: Kingdom) -> bytes:
    farmers = _KINGDOM_FARMERS + encode_varint(kingdom.farmers)
    return encode_short_field(_KINGDOMS, _SECTIONS_BYTES.of(kingdom.sections) + farmers)


def _encode_kingdoms(kingdoms: tuple[Kingdom, ...]) -> bytes:
    return b"".join([_encode_kingdom(each) for each in kingdoms])


def _encode_points(points: tuple[tuple[int, ...], ...]) -> bytes:
    """Encode through protobuf, because points may be negative."""
    rounds = (ugo_pb2.RoundPoints(points=each).SerializeToString() for each in points)
    return b"".join(encode_short_field(_POINTS, each) for each in rounds)


_TRICK_BYTES: Final = EncodedBytes(_encode_trick)
_TRICKS_BYTES: Final = EncodedBytes(_encode_tricks)
_LAST_ROUND_BYTES: Final = EncodedBytes(partial(_encode_tricks, key=_LAST_ROUND))
_SECTIONS_BYTES: Final = EncodedBytes(_encode_sections)
_KINGDOMS_BYTES: Final = EncodedBytes(_encode_kingdoms)
_POINTS_BYTES: Final = EncodedBytes(_encode_points)


def encode_view(view: UgoView) -> bytes:
    """Return the serialised `seatwise.games.ugo.v1.View`."""
    seat, arranger, sizes = view.seat, view.arranger, view.hand_sizes
    return b"".join((
        b"" if seat is None else _SEAT + encode_varint(seat),
        _ROUND, encode_varint(view.round), _ROUNDS, encode_varint(view.rounds),
        _STARTER, encode_varint(view.starter),
        _encode_cards(_HAND, view.hand),
        _HAND_SIZES, encode_varint(len(sizes)), bytes(sizes),
        _LEADER, encode_varint(view.leader),
        _encode_cards(_TRICK, view.trick),
        _encode_cards(_LEGAL_CARDS, view.legal_cards),
        _encode_cards(_WON_CARDS, view.won_cards),
        b"" if arranger is None else _ARRANGER + encode_varint(arranger),
        _KINGDOMS_BYTES.of(view.kingdoms),
        _SUPPLY, encode_varint(view.supply),
        _POINTS_BYTES.of(view.points),
        _TRICKS_BYTES.of(view.tricks),
        _LAST_ROUND_BYTES.of(view.last_round),
    ))  # fmt: skip  # a line is a field


def decode_view(message: ugo_pb2.View) -> UgoView:
    """Return the view of a message. Raises `MalformedView`."""
    try:
        return _decode_fields(message)
    except KeyError as unknown:
        number = unknown.args[0]
        raise MalformedView(f"card number {number} is none that this version of seatwise knows") from None


def _decode_fields(message: ugo_pb2.View) -> UgoView:
    """Return the view. A slice of a repeated field is a list, which Python reads several times as fast as the field."""
    return UgoView(
        seat=Seat(message.seat) if message.HasField("seat") else None,
        round=message.round,
        rounds=message.rounds,
        starter=Seat(message.starter),
        hand=_decode_cards(message.hand[:]),
        hand_sizes=tuple(message.hand_sizes[:]),
        leader=Seat(message.leader),
        trick=_decode_cards(message.trick[:]),
        legal_cards=_decode_cards(message.legal_cards[:]),
        won_cards=_decode_cards(message.won_cards[:]),
        arranger=Seat(message.arranger) if message.HasField("arranger") else None,
        kingdoms=tuple(map(_known_kingdom, map(_kingdom_bytes, message.kingdoms[:]))),
        supply=message.supply,
        points=tuple([tuple(each.points[:]) for each in message.points[:]]),
        tricks=_decode_tricks(message.tricks[:]),
        last_round=_decode_tricks(message.last_round[:]),
    )


def _decode_tricks(messages: Iterable[ugo_pb2.Trick]) -> tuple[Trick, ...]:
    return tuple(map(_known_trick, map(_trick_bytes, messages)))


def check_view(view: UgoView, seat: int, seats: int) -> None:
    """Raise `MalformedView` if it is not the view of this seat of so many, or has nothing to choose from."""
    check_viewer(view.seat, seat)
    for field, given in (("hand_sizes", view.hand_sizes), ("kingdoms", view.kingdoms)):
        check_length(field, given, seats)
    for points in view.points:
        check_length("points", points, seats)
    check_seats("leader", (view.starter, view.leader), seats)
    tricks = view.tricks + view.last_round
    check_seats("tricks", [seat for each in tricks for seat in (each.leader, each.winner)], seats)
    if view.arranger is not None:
        check_seats("arranger", (view.arranger,), seats)
    _check_cards(view, seat, seats)


def _check_cards(view: UgoView, seat: int, seats: int) -> None:
    """Raise `MalformedView` for cards that cannot be held, played or laid so."""
    if not set(view.legal_cards) <= set(view.hand):
        raise MalformedView("legal_cards names cards that are not in the hand")
    if len(set(view.hand)) < len(view.hand):
        raise MalformedView("hand names a card twice")
    if len(view.hand) != view.hand_sizes[seat] or max(view.hand_sizes) > min(view.hand_sizes) + 1:
        raise MalformedView(f"hand_sizes is {list(view.hand_sizes)}, and the hand has {len(view.hand)} cards")
    if max(len(view.trick), len(view.won_cards)) > seats:
        raise MalformedView(f"a trick has more cards than the {seats} seats")
    if not (view.legal_cards or view.won_cards):
        raise MalformedView("there is no card to choose from")


# Most tricks and kingdoms of a view were in the view before, with the same bytes. A view is decoded in a tenth of the time so.


_trick_bytes: Final = ugo_pb2.Trick.SerializeToString
_kingdom_bytes: Final = ugo_pb2.Kingdom.SerializeToString


def _decode_cards(numbers: Iterable[int]) -> tuple[UgoCard, ...]:
    return tuple(map(_FROM_WIRE.__getitem__, numbers))


def _check_length_of_part(data: bytes) -> None:
    """Raise `MalformedView` if no trick and no kingdom is so long. Parts that raise are not remembered."""
    if len(data) > _LONGEST_PART:
        raise MalformedView(
            f"a trick or a kingdom has {len(data)} bytes; at most {_LONGEST_PART} are possible"
        )


@lru_cache(maxsize=_KNOWN_PARTS)
def _known_kingdom(data: bytes) -> Kingdom:
    _check_length_of_part(data)
    message = ugo_pb2.Kingdom.FromString(data)
    sections = tuple(_decode_cards(section.cards) for section in message.sections)
    if len(sections) != len(EMPTY_KINGDOM.sections):
        raise MalformedView(f"a kingdom has {len(EMPTY_KINGDOM.sections)} sections, not {len(sections)}")
    if not 0 <= message.farmers <= MOST_FARMERS:
        raise MalformedView(f"a kingdom has {message.farmers} farmers; there is room for {MOST_FARMERS}")
    return Kingdom(sections, message.farmers)


@lru_cache(maxsize=_KNOWN_PARTS)
def _known_trick(data: bytes) -> Trick:
    _check_length_of_part(data)
    message = ugo_pb2.Trick.FromString(data)
    return Trick(
        leader=Seat(message.leader),
        cards=_decode_cards(message.cards),
        winner=Seat(message.winner),
        laid=_decode_cards(message.laid),
    )


# Moves


def encode_move(move: UgoMove) -> ugo_pb2.Move:
    """Return the message of a move."""
    if isinstance(move, Play):
        return ugo_pb2.Move(play=_card_number(move.card))
    return ugo_pb2.Move(arrange=ugo_pb2.Arrange(cards=map(_card_number, move.cards)))


def _card_number(card: UgoCard) -> ugo_pb2.Card:
    number: Any = card + 1
    return number  # type: ignore[no-any-return]  # an enum of protobuf is a plain int at run time


def decode_move(message: ugo_pb2.Move) -> UgoMove:
    """Return the move of a message. Raises `MalformedMove`."""
    kind = message.WhichOneof("kind")
    if kind == "play":
        return PLAYS[_decode_card(message.play, "play")]
    if kind == "arrange":
        return Arrange(_decode_arrange(message.arrange))
    raise MalformedMove("the move is empty: set play or arrange")


def _decode_arrange(message: ugo_pb2.Arrange) -> tuple[UgoCard, ...]:
    cards = message.cards
    if len(cards) > len(CARDS):
        raise MalformedMove(f"arrange: there are only {len(CARDS)} cards, not {len(cards)}")
    return tuple(_decode_card(number, f"arrange.cards[{place}]") for place, number in enumerate(cards))


def _decode_card(number: int, where: str) -> UgoCard:
    card = _FROM_WIRE.get(number)
    if card is not None:
        return card
    if number == 0:
        raise MalformedMove(f"{where}: the card is not set (CARD_UNSPECIFIED)")
    raise MalformedMove(f"{where}: {number} is no card; they are CARD_R0 = 1 to CARD_K8 = {len(CARDS)}")


CODEC: Final = GameCodec(
    "ugo", Update.UGO_FIELD_NUMBER, encode_view, decode_view, check_view, encode_move, decode_move
)
