"""The check of a move. The text of a refusal names nothing that the seat does not see.

A layout whose cards do not fit is legal: that becomes known only when the round is over (K11). A layout is refused
if it could not lie on a table: a card that the seat does not hold, one card in two places, or one card on another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from seatwise_referee.game import IllegalMove, Seat
from seatwise_referee.games.ubongo.cards import HAND_SIZE, Side, UbongoCard
from seatwise_referee.games.ubongo.geometry import BOUND, TURNS, Placement, overlapping

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatwise_referee.games.ubongo.state import UbongoState

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
