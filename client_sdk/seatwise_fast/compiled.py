"""Loads and prepares the compiled module (`ffi` is for memory, and `lib` for functions), and fills its tables from views."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from seatwise_referee.games.ugo import UgoCard, default_order
from seatwise_referee.games.ugo.cards import VALUES_PER_COLOUR, mask_of

if TYPE_CHECKING:
    from seatwise_referee.games.ugo import Kingdom, UgoView


try:
    _ugo_rules = import_module("seatwise_fast._ugo_rules")
except ImportError as missing:
    raise ImportError(
        "seatwise_fast is here, but its C part is not compiled; run"
        " `python client_sdk/seatwise_fast/build_extension.py` in a clone, with a C compiler installed"
    ) from missing

ffi: Final[Any] = _ugo_rules.ffi
lib: Final[Any] = _ugo_rules.lib
lib.ugo_prepare()


def new_table(view: UgoView, match: tuple[int, int] | None = None, hands: Sequence[int] | None = None) -> Any:
    """Return a compiled table in the position that a seat sees.

    Args:
        view: The view of a seat.
        match: The seats and the rounds that its match must have; `None` for any.
        hands: The hand of each seat as 45 bits; without it only the viewer's hand is known.

    Raises:
        ValueError: The view is a spectator's, or of another match.
    """
    if match is not None and (len(view.hand_sizes), view.rounds) != match:
        raise ValueError(f"the view is of a match with other seats or rounds than {match[0]} and {match[1]}")
    if view.seat is None:
        raise ValueError("this is the view of a spectator; a table is set from the view of a seat")
    table = ffi.new("ugo_table *")
    _set_round(table, view)
    table.hand[view.seat] = mask_of(view.hand)
    for leader, cards in (*((each.leader, each.cards) for each in view.tricks), (view.leader, view.trick)):
        _add_trick(table, leader, cards)
    _set_trick(table, view)
    for seat, kingdom in enumerate(view.kingdoms):
        _set_kingdom(table, seat, kingdom)
    for seat, hand in enumerate(hands or ()):
        table.hand[seat] = hand
    return table


def _set_round(table: Any, view: UgoView) -> None:
    table.seats, table.rounds, table.round = len(view.hand_sizes), view.rounds, view.round
    table.is_over = len(view.points) == view.rounds
    table.supply = view.supply
    for seat, points in enumerate(zip(*view.points, strict=True)):
        table.points[seat], table.round_points[seat] = sum(points), points[-1]


def _add_trick(table: Any, leader: int, cards: Sequence[UgoCard]) -> None:
    for place, card in enumerate(cards):
        seat, led = (leader + place) % table.seats, cards[0] // VALUES_PER_COLOUR
        table.played[seat] |= 1 << card
        if card // VALUES_PER_COLOUR != led:
            table.missing[seat] |= 1 << led


def _set_trick(table: Any, view: UgoView) -> None:
    table.leader = view.leader if view.arranger is None else view.arranger
    table.is_laying = view.arranger is not None
    table.asked = (table.leader + len(view.trick)) % table.seats
    table.trick_size = len(view.trick)
    for place, card in enumerate(view.trick):
        table.trick[place] = card
    for place, card in enumerate(default_order(view.won_cards)):
        table.won[place] = card


def _set_kingdom(table: Any, seat: int, kingdom: Kingdom) -> None:
    table.farmers[seat] = kingdom.farmers
    table.opened[seat] = sum(map(bool, kingdom.sections))
    for number in range(5):
        table.section[seat][number] = table.top[seat][number] = -1
    for number, stack in enumerate(kingdom.sections):
        if stack:
            table.section[seat][stack[-1] // VALUES_PER_COLOUR] = number
            table.top[seat][number] = stack[-1] % VALUES_PER_COLOUR
