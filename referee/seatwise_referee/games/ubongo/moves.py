"""The moves of Ubongo: a seat that builds lays its cards, calls, or agrees to end the round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from seatwise_referee.games.ubongo.cards import HAND_SIZE, UbongoCard
from seatwise_referee.games.ubongo.geometry import Layout, Placement

if TYPE_CHECKING:
    from seatwise_referee.game import Json


@dataclass(frozen=True, slots=True)
class Lay:
    """Replaces the layout of the seat. A card that the layout does not name is back in the hand (K9)."""

    layout: Layout
    """The whole layout, at most nine cards."""


@dataclass(frozen=True, slots=True)
class Call:
    """Calls "Ubongo!" with the last layout: at least seven cards are laid, and all of them fit (K10)."""


@dataclass(frozen=True, slots=True)
class OfferEnd:
    """Agrees to end the round as it is, or takes that back (K14)."""

    on: bool
    """True agrees, False takes it back."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Builds no more in this round: the layout stays as it lies, and the seat agrees to the end.

    The referee plays it for a seat whose time is over or that has left the match.
    """


UbongoMove: TypeAlias = Lay | Call | OfferEnd | Stop

CALL: Final = Call()
STOP: Final = Stop()


def move_to_json(move: UbongoMove) -> Json:
    """Return `{"lay": [["1-01", 0, 0, 1]]}`, `{"call": true}`, `{"offer_end": false}` or `{"stop": true}`."""
    match move:
        case Lay(layout):
            return {"lay": layout_to_json(layout)}
        case OfferEnd(on):
            return {"offer_end": on}
        case Call():
            return {"call": True}
    return {"stop": True}


def move_from_json(json: Json) -> UbongoMove:
    """Return the move that was written so. Raises `ValueError` for anything else."""
    match json:
        case {"lay": written, **others} if not others:
            return Lay(layout_from_json(written))
        case {"offer_end": bool(on), **others} if not others:
            return OfferEnd(on)
        case {"call": True, **others} if not others:
            return CALL
        case {"stop": True, **others} if not others:
            return STOP
    raise ValueError(
        'a move is {"lay": [["1-01", 0, 0, 1]]}, {"call": true}, {"offer_end": true or false} or {"stop": true}, '
        "and no key besides"
    )


def layout_to_json(layout: Layout) -> Json:
    """Return `[["1-01", 0, 0, 1]]`: the name, x, y and quarter turns of each card."""
    return [[str(card), x, y, turn] for card, x, y, turn in layout]


def layout_from_json(json: Json) -> Layout:
    """Return the layout that was written so. Raises `ValueError` for anything else."""
    if not isinstance(json, list) or len(json) > HAND_SIZE:
        raise ValueError(f"a layout is a list of at most {HAND_SIZE} placements")
    return tuple(map(_parse_placement, json))


def _parse_placement(json: Json) -> Placement:
    match json:
        case [str(text), x, y, turn] if (
            type(x) is type(y) is type(turn) is int
        ):  # `type`, because a bool is an int
            return Placement(UbongoCard.parse(text), x, y, turn)
    raise ValueError('a placement is ["1-01", x, y, turn], three whole numbers after the card')
