"""How a match moves on: from layout to layout, from call to points, from round to round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatwise_referee.game import IllegalMove, Seat
from seatwise_referee.games.ubongo.cards import Side
from seatwise_referee.games.ubongo.geometry import is_fitting
from seatwise_referee.games.ubongo.moves import check_call, check_layout, refuse_unasked
from seatwise_referee.games.ubongo.state import (
    BuiltLayout,
    UbongoRound,
    UbongoState,
    begin_round,
    next_hands,
    put_away,
    symbols_in,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatwise_referee.games.ubongo.geometry import Layout

POINTS_OF_CALLER: Final = 10


def after_laying(state: UbongoState, seat: Seat, layout: Layout) -> UbongoState:
    """Return the state with this layout of the seat. It touches no other seat's cards (K6, K9)."""
    layouts = (*state.layouts[:seat], layout, *state.layouts[seat + 1 :])
    return UbongoState(state.building, layouts, state.offers, state.out, state.round)


def with_layouts(state: UbongoState, layouts: Sequence[Layout]) -> UbongoState:
    """Return the state with these layouts, one for each seat, as a journal has them.

    Raises `IllegalMove` if a layout cannot lie so, or differs for a seat that builds no more.
    """
    if len(layouts) != len(state.layouts):
        raise IllegalMove(f"there are {len(state.layouts)} seats, not {len(layouts)}")
    for seat, layout in enumerate(layouts):
        check_layout(state.round.hands[seat], layout)
        if seat not in state.building and layout != state.layouts[seat]:
            raise IllegalMove(f"seat {seat} builds no more in this round")
    return state._replace(layouts=tuple(layouts))


def is_layout_fitting(state: UbongoState, seat: Seat) -> bool:
    """Return whether the seat's layout fits (K7, K8)."""
    return is_fitting(state.layouts[seat], symbols_in(state.round.hands[seat]))


def call_together(state: UbongoState, callers: frozenset[Seat]) -> UbongoState:
    """Return the state after these seats called at the same time (K10 to K13).

    A caller with at least seven fitting cards scores 10, and the round is over. If there is none, the callers are out
    and the others build on, or the round is over, as the match was set up. Raises `IllegalMove` if a seat cannot
    call.
    """
    for seat in sorted(callers):
        if seat not in state.building:
            refuse_unasked(state, seat)
        check_call(state, seat)
    if not callers:
        return state
    right = frozenset(seat for seat in callers if is_layout_fitting(state, seat))
    if right or state.round.settings.false_call_ends:
        return _after_round(state, callers, right)
    building, out = state.building - callers, state.out | callers
    return _if_all_agree(UbongoState(building, state.layouts, state.offers, out, state.round))


def after_offer(state: UbongoState, seat: Seat, *, on: bool) -> UbongoState:
    """Return the state after the seat agreed to end the round, or withdrew that.

    When all seats agree that still build, the round ends (K14).
    """
    offers = state.offers | {seat} if on else state.offers - {seat}
    return _if_all_agree(state._replace(offers=offers))


def after_stopping(state: UbongoState, seat: Seat) -> UbongoState:
    """Return the state after the seat stopped: it builds no more, and an agreed end does not need its consent."""
    building, offers = state.building - {seat}, state.offers - {seat}
    return _if_all_agree(state._replace(building=building, offers=offers))


def end_round(state: UbongoState) -> UbongoState:
    """Return the state after the round ended by agreement, or because its time is over: nobody scores 10 (K14)."""
    return state if state.is_over else _after_round(state, frozenset(), frozenset())


def _if_all_agree(state: UbongoState) -> UbongoState:
    return end_round(state) if state.offers >= state.building else state


def points_of(state: UbongoState, seat: Seat, *, is_right_caller: bool) -> int:
    """Return 10 for a right caller; for others a point for each card laid, or 0 if they do not fit (K11, K12)."""
    if is_right_caller:
        return POINTS_OF_CALLER
    return len(state.layouts[seat]) if is_layout_fitting(state, seat) else 0


def _after_round(state: UbongoState, callers: frozenset[Seat], right: frozenset[Seat]) -> UbongoState:
    """Score the round, turn the cards over or deal the next deck, and let all seats build again (K4, K15)."""
    settings, number, hands, points, _, _ = state.round
    opened = put_away(state.round)
    seats = tuple(map(Seat, range(len(hands))))
    scored = tuple(points_of(state, seat, is_right_caller=seat in right) for seat in seats)
    built = tuple(_built_by(state, seat, has_called=seat in callers | state.out) for seat in seats)
    if number == settings.rounds:
        return _end_match(UbongoRound(settings, number, ((),) * len(hands), (*points, scored), built, opened))
    return begin_round(
        UbongoRound(settings, number + 1, next_hands(state.round), (*points, scored), built, opened)
    )


def _built_by(state: UbongoState, seat: Seat, *, has_called: bool) -> BuiltLayout:
    layout, symbols = state.layouts[seat], symbols_in(state.round.hands[seat])
    sides = tuple(Side(placement.card, symbols[placement.card]) for placement in layout)
    return BuiltLayout(layout, sides, has_called)


def _end_match(round_: UbongoRound) -> UbongoState:
    nobody: frozenset[Seat] = frozenset()
    return UbongoState(nobody, ((),) * len(round_.hands), nobody, nobody, round_)
