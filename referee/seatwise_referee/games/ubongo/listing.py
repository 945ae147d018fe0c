"""Some of the moves of a seat that builds, likely ones first. There are too many to list all of them.

Every layout of up to nine cards is legal. This lists the call, the change of the offer, and the layouts that differ
from the present one by one card: laid where it fits, taken back, laid anywhere, moved anywhere.
"""

from __future__ import annotations

from itertools import chain, product
from typing import TYPE_CHECKING, Final

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
from seatwise_referee.games.ubongo.legality import GOAL
from seatwise_referee.games.ubongo.moves import CALL, Lay, OfferEnd, UbongoMove
from seatwise_referee.games.ubongo.state import symbols_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatwise_referee.game import Seat
    from seatwise_referee.games.ubongo.cards import Side, Symbols, UbongoCard
    from seatwise_referee.games.ubongo.state import UbongoState

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
