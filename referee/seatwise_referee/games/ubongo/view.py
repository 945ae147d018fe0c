"""What one seat may know of a match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatwise_referee.game import Seat
    from seatwise_referee.games.ubongo.cards import Side
    from seatwise_referee.games.ubongo.geometry import Layout
    from seatwise_referee.games.ubongo.state import Built, State


@dataclass(frozen=True, slots=True)
class View:
    """Everything one seat may know; it has no place for what another holds, or lays before the round is over."""

    seat: Seat | None
    """The viewer; `None` is a spectator."""

    round: int
    """The round being played, from 1; the last one when the match is over."""

    rounds: int
    """How many rounds the match has."""

    hand: tuple[Side, ...]
    """The viewer's own nine cards, laid or not, with the symbols of the side that is up; empty for a spectator
    and when the match is over.
    """

    layout: Layout
    """What the viewer has laid."""

    laid: tuple[int, ...]
    """By seat: how many cards lie before it."""

    building: tuple[Seat, ...]
    """The seats that still build in this round."""

    offers: tuple[Seat, ...]
    """Those of them that agree to end the round."""

    out: tuple[Seat, ...]
    """The seats that called in this round although their cards do not fit."""

    points: tuple[tuple[int, ...], ...]
    """Of each finished round, by seat."""

    last_round: tuple[Built, ...]
    """What each seat had laid when the last finished round was over, by seat."""


def view_of(state: State, seat: Seat | None) -> View:
    """What this seat may know; `None` is a spectator, who sees what lies open."""
    round_ = state.round
    return View(
        seat=seat,
        round=round_.number,
        rounds=round_.course.rounds,
        hand=() if seat is None else round_.hands[seat],
        layout=() if seat is None else state.layouts[seat],
        laid=tuple(map(len, state.layouts)),
        building=tuple(sorted(state.building)),
        offers=tuple(sorted(state.offers)),
        out=tuple(sorted(state.out)),
        points=round_.points,
        last_round=round_.last_round,
    )
