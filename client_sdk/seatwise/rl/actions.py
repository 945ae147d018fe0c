"""Moves of UGO! as numbers: one action is one move of a record.

0 to 44 play the card of that number. 45 + p lays the won cards in the p-th of their orders, as the referee lists them:
the default order first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import factorial
from typing import TYPE_CHECKING, Final

from seatwise_referee.games.ugo import CARDS, Arrange, Play, default_order
from seatwise_referee.games.ugo.cards import mask_of
from seatwise_referee.games.ugo.moves import PLAYS

if TYPE_CHECKING:
    from seatwise_referee.games.ugo import UgoCard, UgoMove, UgoView

CARD_ACTIONS: Final = len(CARDS)
LAYING_ORDERS: Final = tuple(tuple(permutations(range(count))) for count in range(5))
"""The orders of so many things."""

ACTION_COUNT: Final = CARD_ACTIONS + factorial(4)


def legal_actions(view: UgoView) -> tuple[int, ...]:
    """Return the actions that the seat of this view may take now, in rising order; none if it is not asked."""
    if view.won_cards and view.arranger == view.seat:
        return tuple(range(CARD_ACTIONS, CARD_ACTIONS + len(LAYING_ORDERS[len(view.won_cards)])))
    return tuple(map(int, view.legal_cards))


def bits_of_legal_actions(view: UgoView) -> int:
    """Return the actions that a seat may take now as a number: bit n is action n."""
    if view.won_cards and view.arranger == view.seat:
        return (1 << len(LAYING_ORDERS[len(view.won_cards)])) - 1 << CARD_ACTIONS
    return mask_of(view.legal_cards)


def move_of_action(action: int, won_cards: Sequence[UgoCard] = ()) -> UgoMove:
    """Return the move of an action.

    Args:
        action: 0 to 68.
        won_cards: The cards that are to be laid, as in `view.won_cards`; needed for the actions from 45.

    Raises:
        ValueError: There is no such action, or not with so many cards.
    """
    if 0 <= action < CARD_ACTIONS:
        return PLAYS[action]
    orders = LAYING_ORDERS[len(won_cards)] if won_cards else ()
    if not 0 <= action - CARD_ACTIONS < len(orders):
        raise ValueError(f"action {action}: there is none with {len(won_cards)} won cards")
    cards = default_order(won_cards)
    return Arrange(tuple(cards[place] for place in orders[action - CARD_ACTIONS]))


def action_of_move(move: UgoMove) -> int:
    """Return the action of a move, as a record has it."""
    if isinstance(move, Play):
        return int(move.card)
    cards = default_order(move.cards)
    order = tuple(map(cards.index, move.cards))
    return CARD_ACTIONS + LAYING_ORDERS[len(cards)].index(order)
