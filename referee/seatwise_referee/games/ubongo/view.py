"""The view of one seat: all that it may know of a match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatwise_referee.value_type import value_type

if TYPE_CHECKING:
    from seatwise_referee.game import Seat
    from seatwise_referee.games.ubongo.cards import Side
    from seatwise_referee.games.ubongo.geometry import Layout
    from seatwise_referee.games.ubongo.state import BuiltLayout, UbongoState


@value_type
class UbongoView:
    """Everything that one seat may know.

    It has no field for another seat's hand, nor for another seat's layout before the round is over.

    Attributes:
        seat: The viewer; `None` is a spectator.
        round: The round being played, from 1.
        rounds: Number of rounds in the match.
        hand: Your nine sides, laid or not: `side.card` and `side.symbols`.
        layout: The cards that you have laid.
        laid: Number of cards that each seat has laid, by seat.
        building: The seats that still build in this round.
        offers: The seats among them that agree to end the round.
        out: The seats that called in this round although their cards do not fit.
        points: The points of each finished round, by seat.
        last_round: The final layout of each seat in the last finished round, by seat.

    `print(view)` shows it on one screen, with the layouts shortened.
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

    def __repr__(self) -> str:
        """Return the view on one screen. It shortens the layouts of the last round to their numbers of cards."""
        hand = [f"{side.card} {side.symbols}" for side in self.hand]
        lines = [
            f"UbongoView(seat={self.seat}, round={self.round} of {self.rounds},",
            *(f"  hand: {', '.join(hand[first : first + 5])}" for first in range(0, len(hand), 5)),
            *(
                f"  layout: {' '.join(map(str, map(tuple, self.layout[at : at + 3])))}"
                for at in range(0, len(self.layout), 3)
            ),
            f"  laid={self.laid}, building={self.building}, offers={self.offers}, out={self.out},",
            *(f"  points[{number}]: {points}" for number, points in enumerate(self.points)),
            f"  last_round: {len(self.last_round)} layouts)",
        ]
        return "\n".join(lines)


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
