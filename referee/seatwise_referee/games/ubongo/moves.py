"""The moves of Ubongo, which of them are legal, and the list of those that a bot may choose from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from seatwise_referee.game import IllegalMove, Seat
from seatwise_referee.games.ubongo.cards import HAND_SIZE, Side, UbongoCard
from seatwise_referee.games.ubongo.geometry import (
    BOUND,
    TURNS,
    Layout,
    Placement,
    Touch,
    fitting_beside,
    overlapping,
    touch,
)
from seatwise_referee.games.ubongo.state import symbols_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatwise_referee.game import Json, Seat
    from seatwise_referee.games.ubongo.cards import Side, Symbols, UbongoCard
    from seatwise_referee.games.ubongo.state import UbongoState


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
        # `type`, because a bool is an int.
        case [str(text), x, y, turn] if type(x) is type(y) is type(turn) is int:
            return Placement(UbongoCard.parse(text), x, y, turn)
    raise ValueError('a placement is ["1-01", x, y, turn], three whole numbers after the card')


GOAL: Final = 7
"""A seat with this many fitting cards can call (K5, K10)."""


def refuse_unasked(state: UbongoState, seat: Seat) -> NoReturn:
    """Raise `IllegalMove`: the seat does not build, or no longer."""
    if state.is_over:
        raise IllegalMove("the match is over")
    if seat in state.out:
        raise IllegalMove("you called in this round, and your cards did not fit: wait for the next round")
    if 0 <= seat < len(state.layouts):
        raise IllegalMove("you build no more in this round: wait for the next")
    raise IllegalMove(f"there is no seat {seat} at this table")


def check_call(state: UbongoState, seat: Seat) -> None:
    """Raise `IllegalMove` if the seat has laid fewer than seven cards. The call shows whether they fit (K10, K11).

    A seat that agrees to end the round cannot call either. All seats see its offer, and would see the offer go
    before they are told of the call.
    """
    if seat in state.offers:
        raise IllegalMove("you agree to end the round: withdraw your offer first, then call")
    laid = len(state.layouts[seat])
    if laid < GOAL:
        raise IllegalMove(f"you call with {GOAL} fitting cards; you have laid {laid}")


def check_layout(hand: Iterable[Side], layout: object) -> None:
    """Raise `IllegalMove` if a seat with this hand cannot have this layout."""
    if type(layout) is not tuple:
        raise IllegalMove("a layout is a tuple of placements")
    if len(layout) > HAND_SIZE:
        raise IllegalMove(f"you hold {HAND_SIZE} cards, and the layout names {len(layout)}")
    for placement in layout:
        _check_placement(placement)
    _check_cards([placement.card for placement in layout], {side.card for side in hand})
    pair = overlapping(layout)
    if pair is not None:
        one, other = pair
        raise IllegalMove(f"{one.card} and {other.card} overlap")


def _check_placement(placement: Any) -> None:
    if type(placement) is not Placement or type(placement.card) is not UbongoCard:
        raise IllegalMove(
            "a layout holds something that is no placement: each is Placement(card, x, y, turn)"
        )
    card, x, y, turn = placement
    if not type(x) is type(y) is type(turn) is int:  # `type`, because a bool is an int
        raise IllegalMove(f"{card}: x, y and turn are whole numbers")
    if not -BOUND <= x <= BOUND or not -BOUND <= y <= BOUND:
        raise IllegalMove(f"{card} is out of bounds: x and y go from {-BOUND} to {BOUND}")
    if not 0 <= turn < TURNS:
        raise IllegalMove(f"{card} is turned in an unknown way: turn goes from 0 to {TURNS - 1}")


def _check_cards(cards: list[UbongoCard], hand: set[UbongoCard]) -> None:
    for number, card in enumerate(cards):
        if card not in hand:
            held = ", ".join(map(str, sorted(hand)))
            raise IllegalMove(f"you do not hold {card}; you hold {held}")
        if card in cards[:number]:
            raise IllegalMove(f"{card} is laid twice")


_ALONG: Final = sorted(range(-BOUND, BOUND + 1), key=abs)
"""From the middle outwards, so that cards are laid near one another first."""


def list_moves(state: UbongoState, seat: Seat) -> Iterator[UbongoMove]:
    """Yield each move once, in a fixed order. All of them are legal."""
    layout, hand = state.layouts[seat], state.round.hands[seat]
    if len(layout) >= GOAL and seat not in state.offers:
        yield CALL
    yield OfferEnd(on=seat not in state.offers)
    yield from map(Lay, dict.fromkeys(_likely_moves(layout, hand)))
    yield from (Lay(each) for each in _unlikely_moves(layout, hand))


def _likely_moves(layout: Layout, hand: tuple[Side, ...]) -> Iterator[Layout]:
    """Yield the layouts with one card more where it fits, or one card less."""
    symbols = symbols_in(hand)
    for side in hand:
        if side.card not in {placement.card for placement in layout}:
            yield from ((*layout, placement) for placement in fitting_places(layout, side.card, symbols))
    for taken in layout:
        yield tuple(placement for placement in layout if placement != taken)


def fitting_places(
    layout: Layout, card: UbongoCard, symbols: Mapping[UbongoCard, Symbols]
) -> Iterator[Placement]:
    """Find every place in which a card fits all cards that it touches, and touches at least one.

    Args:
        layout: The cards as they lie. In an empty layout the only place is upright in the middle.
        card: The card to add.
        symbols: The symbols of the side that is up, for `card` and each card of the layout.

    Yields:
        Each placement of `card` within the bounds.

    Raises:
        KeyError: `symbols` lacks a card.

    Example:
        >>> from seatwise.ubongo import Card
        >>> list(fitting_places((), Card(0), {Card(0): "ABCDEF"}))
        [Placement(card=1-01, x=0, y=0, turn=0)]
    """
    if not layout:
        yield Placement(card, 0, 0, 0)
    beside = (fitting_beside(each, symbols[each.card], card, symbols[card]) for each in layout)
    for placement in dict.fromkeys(chain.from_iterable(beside)):
        if abs(placement.x) <= BOUND >= abs(placement.y) and all(
            touch(each, symbols[each.card], placement, symbols[card]) in (Touch.APART, Touch.FITTING)
            for each in layout
        ):
            yield placement


def _unlikely_moves(layout: Layout, hand: tuple[Side, ...]) -> Iterator[Layout]:
    """Yield the other layouts with one card more, or one card in another place, wherever there is room."""
    said = {layout, *_likely_moves(layout, hand)}
    for y, x, turn, side in product(_ALONG, _ALONG, range(TURNS), hand):
        placement = Placement(side.card, x, y, turn)
        changed = (*(each for each in layout if each.card != side.card), placement)
        if changed not in said and overlapping(changed) is None:
            yield changed
