"""Chance in a hosted game: a published function of the deal seed, so that a record can be verified.

Draw number `n` (from 0) among outcomes with the whole weights `w` is made so:

1. `total` is the sum of the weights, and `limit` is the largest multiple of `total` that is at most 2^256.
2. For attempt 0, 1, 2 ...: `r` is HMAC-SHA256(seed, "draw/n/attempt") as a number, the first byte highest.
3. The first `r` below `limit` counts. The outcome is the first one whose weights, summed up to it, exceed `r mod total`.

docs/record-format.md has the same in words.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from itertools import accumulate, count
from typing import Final, TypeVar

OutcomeT = TypeVar("OutcomeT")

MOST_WEIGHT: Final = 2**64
"""The most that the weights of one draw may sum to."""

_DIGESTS: Final = 2**256


def draw_index(seed: bytes, number: int, weights: Sequence[int]) -> int:
    """Return the index of the outcome of one draw.

    Args:
        seed: 32 bytes: the seed of the deals.
        number: The number of the draw in its match, from 0.
        weights: The weight of each outcome: whole numbers from 0, at least one of them above 0.

    Raises:
        ValueError: The weights are no such numbers.

    Example:
        >>> draw_index(bytes(32), 0, (1, 1, 2))
        1
    """
    _check_weights(weights)
    total = sum(weights)
    limit = _DIGESTS - _DIGESTS % total
    for attempt in count():
        drawn = int.from_bytes(hmac.digest(seed, f"draw/{number}/{attempt}".encode(), "sha256"))
        if drawn < limit:
            break
    return next(index for index, upto in enumerate(accumulate(weights)) if upto > drawn % total)


def _check_weights(weights: Sequence[int]) -> None:
    for weight in weights:
        if type(weight) is not int or weight < 0:
            raise ValueError(f"the weight {weight!r}: a weight is a whole number from 0")
    if not 0 < sum(weights) <= MOST_WEIGHT:
        raise ValueError(
            f"the weights sum to {sum(weights)}: they must sum to 1 or more, and at most to 2^64"
        )


class Chance:
    """Makes the draws of one step of a match. Each draw has the next number."""

    def __init__(self, seed: bytes, draws: int = 0) -> None:
        """Continue after `draws` draws with this seed."""
        self._seed = seed
        self._draws = draws

    @property
    def draws(self) -> int:
        """How many draws there were so far."""
        return self._draws

    def draw_outcome(self, outcomes: Iterable[tuple[OutcomeT, int]]) -> OutcomeT:
        """Draw one of some outcomes, each with its weight.

        Args:
            outcomes: Pairs of an outcome and its weight, a whole number. Their order must not depend on chance.

        Returns:
            One of the outcomes.

        Raises:
            ValueError: There is no outcome, or a weight is no whole number from 0.

        Example:
            >>> Chance(bytes(32)).draw_outcome([("heads", 1), ("tails", 1)])
            'tails'
        """
        pairs = list(outcomes)
        index = draw_index(self._seed, self._draws, [weight for _, weight in pairs])
        self._draws += 1
        return pairs[index][0]

    def shuffle_items(self, items: Iterable[OutcomeT]) -> list[OutcomeT]:
        """Return the items in an order in which each is equally likely. It takes one draw for each item but the last.

        Example:
            >>> sorted(Chance(bytes(32)).shuffle_items("abc"))
            ['a', 'b', 'c']
        """
        left, shuffled = list(items), []
        while len(left) > 1:
            shuffled.append(left.pop(self.draw_outcome((index, 1) for index in range(len(left)))))
        return shuffled + left
