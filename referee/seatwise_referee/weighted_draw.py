"""A draw by whole-number weights: a published function of a seed, so that a record can be verified.

Draw number `n` (from 0) among outcomes with the whole weights `w` is made so:

1. `total` is the sum of the weights, and `limit` is the largest multiple of `total` that is at most 2^256.
2. For attempt 0, 1, 2 ...: `r` is HMAC-SHA256(seed, "draw/n/attempt") as a number, the first byte highest.
3. The first `r` below `limit` counts. The outcome is the first one whose weights, summed up to it, exceed `r mod total`.

docs/record-format.md has the same in words.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from itertools import accumulate, count
from typing import Final

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
