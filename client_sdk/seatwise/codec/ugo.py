"""UGO! on the wire: views and moves, there and back.

The server encodes a view for every question it puts, so `encode_view` writes the bytes itself: every
number in a view but the points is below 128 and so one byte, and messages set side by side merge.
What lies open changes once a trick and is the same for all seats, so its bytes are kept.

Microseconds a view, four seats in the second round, CPython 3.11, one core of a shared machine:
2.3 where the open table is known, 6 on average over matches; field by field through protobuf about 100.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from seatwise.codec.errors import MalformedMove, MalformedView
from seatwise.codec.kept import Kept, part, tag
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import CARDS, Arrange, Card, Kingdom, Move, Play, Trick, View

# Cards

_TO_WIRE: Final = bytes(min(number + 1, 255) for number in range(256))
"""A card's number on the wire is one more than in the rules: 0 is taken by CARD_UNSPECIFIED."""

_FROM_WIRE: Final[dict[int, Card]] = {number + 1: card for number, card in enumerate(CARDS)}


def _cards(key: bytes, cards: tuple[Card, ...]) -> bytes:
    """A packed list of cards."""
    return key + bytes((len(cards),)) + bytes(cards).translate(_TO_WIRE) if cards else b""


# The view, field by field as in ugo.proto

_HAND: Final = tag(5)
_HAND_SIZES: Final = tag(6)
_TRICK: Final = tag(8)
_LEGAL_CARDS: Final = tag(9)
_WON_CARDS: Final = tag(10)
_KINGDOMS: Final = tag(12)
_POINTS: Final = tag(14)
_TRICKS: Final = tag(15)
_LAST_ROUND: Final = tag(16)
_SECTIONS: Final = tag(1)
_SECTION_CARDS: Final = tag(1)
_TRICK_CARDS: Final = tag(2)
_TRICK_LAID: Final = tag(4)


@Kept
def _encode_trick(trick: Trick) -> bytes:
    """Without a key: the same trick is one of this round's first and of the last one's later."""
    return part(
        b"",
        b"\x08%c%b\x18%c%b"
        % (trick.leader, _cards(_TRICK_CARDS, trick.cards), trick.winner, _cards(_TRICK_LAID, trick.laid)),
    )


@Kept
def _encode_tricks(tricks: tuple[Trick, ...]) -> bytes:
    return b"".join(_TRICKS + _encode_trick(trick) for trick in tricks)


@Kept
def _encode_last_round(tricks: tuple[Trick, ...]) -> bytes:
    return b"".join(_LAST_ROUND + _encode_trick(trick) for trick in tricks)


@Kept
def _encode_kingdom(kingdom: Kingdom) -> bytes:
    sections = b"".join(part(_SECTIONS, _cards(_SECTION_CARDS, stack)) for stack in kingdom.sections)
    return part(_KINGDOMS, sections + b"\x10%c" % kingdom.farmers)


@Kept
def _encode_kingdoms(kingdoms: tuple[Kingdom, ...]) -> bytes:
    return b"".join(map(_encode_kingdom, kingdoms))


@Kept
def _encode_points(points: tuple[tuple[int, ...], ...]) -> bytes:
    """By protobuf, for points may be negative."""
    rounds = (ugo_pb2.RoundPoints(points=each).SerializeToString() for each in points)
    return b"".join(part(_POINTS, each) for each in rounds)


def encode_view(view: View) -> bytes:
    """The serialised `seatwise.games.ugo.v1.View`."""
    sizes = view.hand_sizes
    return b"".join(
        (
            b"" if view.seat is None else b"\x08%c" % view.seat,
            b"\x10%c\x18%c\x20%c" % (view.round, view.rounds, view.starter),
            _cards(_HAND, view.hand),
            b"%b%c%b" % (_HAND_SIZES, len(sizes), bytes(sizes)),
            b"\x38%c" % view.leader,
            _cards(_TRICK, view.trick),
            _cards(_LEGAL_CARDS, view.legal_cards),
            _cards(_WON_CARDS, view.won_cards),
            b"" if view.arranger is None else b"\x58%c" % view.arranger,
            _encode_kingdoms(view.kingdoms),
            b"\x68%c" % view.supply,
            _encode_points(view.points),
            _encode_tricks(view.tricks),
            _encode_last_round(view.last_round),
        )
    )


def decode_view(message: ugo_pb2.View) -> View:
    """The view of a message, or `MalformedView`."""
    try:
        return _decoded_view(message)
    except KeyError as unknown:
        raise MalformedView(
            f"card number {unknown.args[0]} is none that this version of seatwise knows"
        ) from None


def _decoded_view(message: ugo_pb2.View) -> View:
    return View(
        seat=Seat(message.seat) if message.HasField("seat") else None,
        round=message.round,
        rounds=message.rounds,
        starter=Seat(message.starter),
        hand=_decode_cards(message.hand),
        hand_sizes=tuple(message.hand_sizes),
        leader=Seat(message.leader),
        trick=_decode_cards(message.trick),
        legal_cards=_decode_cards(message.legal_cards),
        won_cards=_decode_cards(message.won_cards),
        arranger=Seat(message.arranger) if message.HasField("arranger") else None,
        kingdoms=tuple(map(_decode_kingdom, message.kingdoms)),
        supply=message.supply,
        points=tuple(tuple(each.points) for each in message.points),
        tricks=tuple(map(_decode_trick, message.tricks)),
        last_round=tuple(map(_decode_trick, message.last_round)),
    )


def _decode_cards(numbers: Iterable[int]) -> tuple[Card, ...]:
    return tuple(map(_FROM_WIRE.__getitem__, numbers))


def _decode_kingdom(message: ugo_pb2.Kingdom) -> Kingdom:
    return Kingdom(tuple(_decode_cards(section.cards) for section in message.sections), message.farmers)


def _decode_trick(message: ugo_pb2.Trick) -> Trick:
    return Trick(
        leader=Seat(message.leader),
        cards=_decode_cards(message.cards),
        winner=Seat(message.winner),
        laid=_decode_cards(message.laid),
    )


# Moves


def encode_move(move: Move) -> ugo_pb2.Move:
    """The message of a move."""
    if isinstance(move, Play):
        return ugo_pb2.Move(play=_wire(move.card))
    return ugo_pb2.Move(arrange=ugo_pb2.Arrange(cards=map(_wire, move.cards)))


def _wire(card: Card) -> ugo_pb2.Card:
    number: Any = card + 1
    return number  # type: ignore[no-any-return]  # an enum of protobuf is a plain int at run time


def decode_move(message: ugo_pb2.Move) -> Move:
    """The move of a message, or `MalformedMove`."""
    kind = message.WhichOneof("kind")
    if kind == "play":
        return Play(_decode_card(message.play, "play"))
    if kind == "arrange":
        return Arrange(_decode_arrange(message.arrange))
    raise MalformedMove("the move is empty: set play or arrange")


def _decode_arrange(message: ugo_pb2.Arrange) -> tuple[Card, ...]:
    cards = message.cards
    if len(cards) > len(CARDS):
        raise MalformedMove(f"arrange: there are only {len(CARDS)} cards, not {len(cards)}")
    return tuple(_decode_card(number, f"arrange.cards[{place}]") for place, number in enumerate(cards))


def _decode_card(number: int, where: str) -> Card:
    card = _FROM_WIRE.get(number)
    if card is not None:
        return card
    if number == 0:
        raise MalformedMove(f"{where}: the card is not set (CARD_UNSPECIFIED)")
    raise MalformedMove(f"{where}: {number} is no card; they are CARD_R0 = 1 to CARD_K8 = {len(CARDS)}")
