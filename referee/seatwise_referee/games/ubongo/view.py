"""The view of one seat: all that it may know of a match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatwise_referee.game import Seat
    from seatwise_referee.games.ubongo.cards import Side
    from seatwise_referee.games.ubongo.geometry import Layout
    from seatwise_referee.games.ubongo.state import BuiltLayout, UbongoState


@dataclass(frozen=True, slots=True)
class UbongoView:
    """Everything that one seat may know.

    It has no field for another seat's hand, nor for another seat's layout before the round is over.
    """

    seat: Seat | None
    """The viewer; `None` is a spectator."""

    round: int
    """The round being played, from 1; the last round if the match is over."""

    rounds: int
    """Number of rounds in the match."""

    hand: tuple[Side, ...]
    """The viewer's own nine cards, laid or not, with the symbols of the side that is up; empty for a spectator
    and when the match is over.
    """

    layout: Layout
    """The cards that the viewer has laid."""

    laid: tuple[int, ...]
    """Number of cards that each seat has laid, by seat."""

    building: tuple[Seat, ...]
    """The seats that still build in this round."""

    offers: tuple[Seat, ...]
    """The seats among them that agree to end the round."""

    out: tuple[Seat, ...]
    """The seats that called in this round although their cards do not fit."""

    points: tuple[tuple[int, ...], ...]
    """The points of each finished round: a tuple of rounds, each a tuple by seat."""

    last_round: tuple[BuiltLayout, ...]
    """The final layout of each seat in the last finished round, by seat; empty in the first round."""


def view_of(state: UbongoState, seat: Seat | None) -> UbongoView:
    """Return the view of a seat. `None` is a spectator, which sees only open facts."""
    round_ = state.round
    return UbongoView(
        seat=seat,
        round=round_.number,
        rounds=round_.settings.rounds,
        hand=() if seat is None else round_.hands[seat],
        layout=() if seat is None else state.layouts[seat],
        laid=tuple(map(len, state.layouts)),
        building=tuple(sorted(state.building)),
        offers=tuple(sorted(state.offers)),
        out=tuple(sorted(state.out)),
        points=round_.points,
        last_round=round_.last_round,
    )
