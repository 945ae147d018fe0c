"""What is left of points when the bot and those it met are taken off: the chance in them, which intervals are made of.

A schedule is fixed, so that a strong opponent is no chance: without this a field of very unequal bots would have intervals far
too wide. Points are taken as a sum of what a bot makes and of what each of its opponents lets it make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from seatwise_server.competition.results import Result

SWEEPS: Final = 30
CLOSE: Final = 1e-7
"""Of the spread; what a sweep changes less than that is settled."""


def chance_in(
    results: Sequence[Result], values: Sequence[tuple[float, ...]]
) -> tuple[list[tuple[float, ...]], float]:
    """By match and seat what neither bot nor opponents explain; and how much larger its squares are in truth.

    Taking the opponents off takes a part of the chance along, one value for each bot, which is given back by the factor. (So
    does taking off a bot's own mean; but that every interval around a mean knows.)
    """
    left = [list(own) for own in values]
    spread = max((abs(value) for own in left for value in own), default=0.0)
    for _ in range(SWEEPS):
        if max(_take_off_own(results, left), _take_off_opponents(results, left)) <= CLOSE * spread:
            break
    _take_off_own(results, left)
    count = sum(map(len, left))
    fitted = len({bot for result in results for bot in result.bots})
    return list(map(tuple, left)), count / max(count - fitted, 1)


def _take_off_own(results: Sequence[Result], left: list[list[float]]) -> float:
    """Each bot's mean; the largest of them is returned."""
    found: dict[str, list[float]] = defaultdict(list)
    for result, own in zip(results, left, strict=True):
        for bot, value in zip(result.bots, own, strict=True):
            found[bot].append(value)
    means = _means(found)
    for result, own in zip(results, left, strict=True):
        for seat, bot in enumerate(result.bots):
            own[seat] -= means[bot]
    return max(map(abs, means.values()), default=0.0)


def _take_off_opponents(results: Sequence[Result], left: list[list[float]]) -> float:
    """What others make beside each bot. As several sit beside a seat only a part is taken at once, or sweeps would overshoot."""
    found: dict[str, list[float]] = defaultdict(list)
    for result, own in zip(results, left, strict=True):
        total = sum(own)
        for bot, value in zip(result.bots, own, strict=True):
            found[bot].append((total - value) / (len(own) - 1))
    means = _means(found)
    for result, own in zip(results, left, strict=True):
        total = sum(means[bot] for bot in result.bots)
        for seat, bot in enumerate(result.bots):
            own[seat] -= (total - means[bot]) / (len(own) - 1)
    return max(map(abs, means.values()), default=0.0)


def _means(found: dict[str, list[float]]) -> dict[str, float]:
    return {bot: sum(values) / len(values) for bot, values in found.items()}
