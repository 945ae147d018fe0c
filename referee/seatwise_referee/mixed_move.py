"""A mixed move: several moves with weights, of which the referee draws one.

A bot that chooses at random may leave the draw to the referee. The record then shows with which probabilities the bot chose,
and they are true: the bot had no part in the draw. So statistics can take the luck of the draw off its points.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any, Final

from seatwise_referee.game import ChecksChoices
from seatwise_referee.shuffle import deal_seed

if TYPE_CHECKING:
    from seatwise_referee.game import Seat
    from seatwise_referee.setup import Setup


MOST_WEIGHT: Final = 2**64
"""The most that the weights of one draw may sum to."""

_DIGESTS: Final = 2**256


def draw_index(seed: bytes, number: int, weights: Sequence[int]) -> int:
    """Return the index of the outcome of one draw.

    Args:
        seed: 32 bytes that nobody knows before the draw.
        number: The number of the draw in its match, from 0.
        weights: The weight of each outcome: whole numbers from 0, at least one of them above 0.

    Raises:
        ValueError: The weights are no such numbers.

    Example:
        >>> draw_index(bytes(32), 0, (1, 1, 2))
        1
    """
    _check_weights(weights)
    drawn = draw_number(seed, number, sum(weights))
    return next(index for index, upto in enumerate(accumulate(weights)) if upto > drawn)


def draw_number(seed: bytes, number: int, total: int) -> int:
    """Return a number from 0 that is less than `total`: the index of the outcome if all weights are 1."""
    limit = _DIGESTS - _DIGESTS % total
    for attempt in count():
        drawn = int.from_bytes(hmac.digest(seed, f"draw/{number}/{attempt}".encode(), "sha256"))
        if drawn < limit:
            break
    return drawn % total


def _check_weights(weights: Sequence[int]) -> None:
    for weight in weights:
        if type(weight) is not int or weight < 0:
            raise ValueError(f"the weight {weight!r}: a weight is a whole number from 0")
    if not 0 < sum(weights) <= MOST_WEIGHT:
        raise ValueError(
            f"the weights sum to {sum(weights)}: they must sum to 1 or more, and at most to 2^64"
        )


MOST_MIXED_CHOICES: Final = 64
MOST_CHOICE_WEIGHT: Final = 2**31 - 1


class MixedMove:
    """Several moves with weights. The referee draws one, with a probability in proportion to its weight.

    Example:
        >>> MixedMove({"R3": 2, "B1": 1, "K0": 0}).choices
        (('R3', 2), ('B1', 1))
    """

    __slots__ = ("choices",)

    def __init__(self, choices: Mapping[Any, int] | Iterable[tuple[Any, int]]) -> None:
        """Take the choices: a mapping from moves to weights, or pairs of a move and its weight.

        Args:
            choices: Weights are whole numbers from 0 to 2^31 - 1. A move with weight 0 is left out. At least one and at most
                64 moves remain.

        Raises:
            ValueError: There are no or too many choices, or a weight is no such number.
        """
        pairs = choices.items() if isinstance(choices, Mapping) else choices
        self.choices: tuple[tuple[Any, int], ...] = tuple(
            (move, _checked_weight(weight)) for move, weight in pairs if weight != 0
        )
        if not 1 <= len(self.choices) <= MOST_MIXED_CHOICES:
            raise ValueError(
                f"a mixed move has 1 to {MOST_MIXED_CHOICES} choices with a weight above 0; this has {len(self.choices)}"
            )

    def __repr__(self) -> str:
        return f"MixedMove({list(self.choices)!r})"


def _checked_weight(weight: Any) -> int:
    if type(weight) is not int or not 1 <= weight <= MOST_CHOICE_WEIGHT:
        raise ValueError(f"the weight {weight!r}: a weight is a whole number from 0 to {MOST_CHOICE_WEIGHT}")
    return weight


def check_choices(game: Any, state: Any, seat: Seat, moves: Iterable[Any]) -> None:
    """Check that the seat may have each of these moves among its choices. Raises `IllegalMove`."""
    check = game.check_choice if isinstance(game, ChecksChoices) else game.play
    for move in moves:
        check(state, seat, move)


def draw_choice(
    setup: Setup, nonces: Iterable[bytes | None], seat: Seat, prompt: int, weights: Iterable[int]
) -> int:
    """Return the index of the choice that the referee draws.

    Nobody can know it before: it follows from the seed of the match and from the nonces of all seats. In a set of duplicate deals
    each match has a seed of its own, so the draws differ where the deals are the same.

    Args:
        setup: The match.
        nonces: The nonces, by seat.
        seat: The seat that moves.
        prompt: The number of the prompt that it answers.
        weights: The weight of each choice.
    """
    seed = hmac.digest(deal_seed(setup.seed, nonces), f"moves/{seat}".encode(), "sha256")
    return draw_index(seed, prompt, tuple(weights))
