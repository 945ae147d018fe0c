"""Estimates what the hands of a match of UGO! are worth at each seat: the mean points of simulated matches with them.

The simulated players are those of `counting`: they lead high and follow low, in an order of the values that is drawn for each
round. Nothing depends on how the bots of the match played. Pages of leagues measure the luck of a deal with it. So its figures
must never change.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from seatwise.samples.counting import VALUE
from seatwise.samples.counting_ahead import LeadModel
from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import Ugo, UgoState
from seatwise_referee.games.ugo.state import deal_round

if TYPE_CHECKING:
    from seatwise_referee.game import Options

PLAYOUTS_OF_ROUND: Final = 32
"""The number of times that each round is simulated."""

PLAYOUT_WHIM: Final = 12.0
"""How much the simulated players deviate from leading high and following low. `counting` has 7 in its place."""


def mean_playout_points(seats: int, seed: bytes, options: Options) -> tuple[float, ...]:
    """Return the mean points of each seat over 32 simulations of every round.

    Args:
        seats: 2 to 4.
        seed: The seed of the deals. The simulations follow from it, too.
        options: The options of the match.

    Example:
        >>> mean_playout_points(2, bytes(32), {"rounds": 1})
        (0.0, 0.0)
    """
    first = Ugo().deal(seats, seed, options)
    chance = Random(seed)
    sums = [0] * seats
    for number in range(1, first.round.rounds + 1):
        state = deal_round(first.round._replace(number=number), seats, first.prompt)
        for seat, points in enumerate(_play_round_out(state, chance)):
            sums[seat] += points
    return tuple(points / PLAYOUTS_OF_ROUND for points in sums)


def _play_round_out(state: UgoState, chance: Random) -> list[int]:
    """Return the points of each seat, added up over all simulations of the round."""
    views = [Ugo().view(state, Seat(seat)) for seat in range(len(state.hands))]
    starter = views[0].leader
    model = LeadModel(views[starter], chance)
    sums = [0] * len(views)
    for _ in range(PLAYOUTS_OF_ROUND):
        wish = [value + PLAYOUT_WHIM * chance.random() for value in VALUE]
        hands = [sorted(view.hand, key=wish.__getitem__) for view in views]
        for seat, points in enumerate(model.play_out_all(hands, hands[starter][-1])):
            sums[seat] += points
    return sums
