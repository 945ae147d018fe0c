"""Who sits where at a table, so that everybody sits everywhere, and in every relation to everybody, equally often.

The order around the table decides who sits how far from whom, and where it begins decides who has which seat: the two are
chosen one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from math import exp
from random import Random
from typing import Final, Protocol

SWEEPS: Final = 100
HEAT: Final = 0.5
COOL: Final = 0.15
"""At the start and at the end of the search: low, so that it keeps what is even from the start."""

Bots = tuple[str, ...]


class Counts(Protocol):
    """Something that should have happened to all equally often."""

    def add(self, bots: Sequence[str], times: int = 1) -> None:
        """They have sat so; -1 takes it back."""

    def cost(self, bots: Sequence[str]) -> int:
        """Half of what sitting so would add to the sum of squares, but for a constant."""

    def squares(self) -> int:
        """The sum of all squares: the more even, the less."""


class Places:
    """How often each bot has sat at each seat."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()

    def add(self, bots: Sequence[str], times: int = 1) -> None:
        for seat, bot in enumerate(bots):
            self.counts[bot, seat] += times

    def cost(self, bots: Sequence[str]) -> int:
        return sum(self.counts[bot, seat] for seat, bot in enumerate(bots))

    def squares(self) -> int:
        return sum(count * count for count in self.counts.values())


class Relations:
    """How often each bot has had each other one so many seats to its left."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()

    def add(self, bots: Sequence[str], times: int = 1) -> None:
        for seat, bot in enumerate(bots):
            for by in range(1, len(bots)):
                self.counts[bot, bots[(seat + by) % len(bots)], by] += times

    def cost(self, bots: Sequence[str]) -> int:
        return sum(
            self.counts[bot, bots[there], there - here]
            for here, bot in enumerate(bots)
            for there in range(here + 1, len(bots))
        )

    def squares(self) -> int:
        return sum(count * count for count in self.counts.values())


class Seating:
    """Seats tables one by one, each in the best way after all before it."""

    def __init__(self, tables: Iterable[Sequence[str]] = ()) -> None:
        self._counts: tuple[Counts, ...] = (Relations(), Places())
        for bots in tables:
            self._add(bots)

    def seat(self, bots: Sequence[str], chance: Random) -> Bots:
        """They sit so from now on."""
        order = _drawn(list(permutations(bots)), self._cost, 0.01, chance)
        self._add(order)
        return order

    def _add(self, bots: Sequence[str]) -> None:
        for each in self._counts:
            each.add(bots)

    def _cost(self, bots: Bots) -> int:
        return sum(each.cost(bots) for each in self._counts)


def balanced(tables: Sequence[Bots], chance: Random) -> list[Bots]:
    """The same tables, with seats chosen for all of them together."""
    ordered = _annealed(tables, Relations(), _circles, chance)
    return _annealed(ordered, Places(), _turns, chance)


def _circles(bots: Bots) -> list[Bots]:
    """All orders around a table."""
    return [(bots[0], *others) for others in permutations(bots[1:])]


def _turns(bots: Bots) -> list[Bots]:
    """All seats at which the same order can begin."""
    return [bots[by:] + bots[:by] for by in range(len(bots))]


def _annealed(
    tables: Sequence[Bots], counts: Counts, choices: Callable[[Bots], list[Bots]], chance: Random
) -> list[Bots]:
    seated = list(tables)
    for bots in seated:
        counts.add(bots)
    best, least = list(seated), counts.squares()
    for sweep in range(SWEEPS):
        heat = COOL + (HEAT - COOL) * (1 - sweep / SWEEPS)
        for place, bots in enumerate(seated):
            counts.add(bots, -1)
            seated[place] = _drawn(choices(bots), counts.cost, heat, chance)
            counts.add(seated[place])
        if (squares := counts.squares()) < least:
            best, least = list(seated), squares
    return best


def _drawn(choices: list[Bots], cost: Callable[[Bots], int], heat: float, chance: Random) -> Bots:
    costs = [cost(each) for each in choices]
    weights = [exp((min(costs) - each) / heat) for each in costs]
    return chance.choices(choices, weights)[0]
