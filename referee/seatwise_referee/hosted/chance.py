"""Chance in a hosted game: draws from the seed of the deals, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from seatwise_referee.mixed_move import draw_index, draw_number

OutcomeT = TypeVar("OutcomeT")


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
            shuffled.append(left.pop(draw_number(self._seed, self._draws, len(left))))
            self._draws += 1
        return shuffled + left
