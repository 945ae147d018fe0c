"""Samples and plays the deals of the bot `counting`, with the random numbers that it would draw itself."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

from seatwise_fast.compiled import ffi, lib, new_table

if TYPE_CHECKING:
    from seatwise_referee.games.ugo import UgoView

if not hasattr(lib, "ugo_count_deals"):
    raise ImportError(
        "the C part of seatwise_fast is older than this module; compile it again: build_extension.py"
    )

SEATS_IN_MEMORY: Final = 4
CARD_COUNT: Final = 45
WORDS_OF_WISHES: Final = 2 * CARD_COUNT
WORDS_OF_CARD: Final = 3
"""A shuffle draws less than two words for each card on average, and more of them than three is rare over many deals."""


class CountedDeals:
    """Deals for one question. After `close` the random numbers go on where they would in Python."""

    def __init__(
        self, view: UgoView, others: Sequence[int], unseen: Sequence[int], chance: Random, deals: int
    ) -> None:
        """Prepare the deals.

        Args:
            view: The view of a seat that is asked for a card.
            others: The other seats in the order in which they are dealt.
            unseen: The cards that the seat has not seen.
            chance: Its random numbers.
            deals: How many deals there will be, about.
        """
        self._table = new_table(view)
        self._sizes, self._others, self._pool = bytes(view.hand_sizes), bytes(others), bytearray(unseen)
        self._chance, self._before = chance, chance.getstate()
        self._used = ffi.new("int *")
        self._draw_words(deals * (WORDS_OF_WISHES + WORDS_OF_CARD * len(unseen)))

    def play(self, deals: int, cards: Sequence[int], whim: float) -> list[list[int]]:
        """Sample so many deals, and play each of them out after each card.

        Args:
            deals: The number of deals.
            cards: The legal cards to try.
            whim: How much the simulated players deviate from leading high and following low.

        Returns:
            For each card the sum of the points of the round, by seat.
        """
        pool, points = bytes(self._pool), ffi.new("int64_t[]", SEATS_IN_MEMORY * len(cards))
        while self._count_deals(deals, bytes(cards), whim, points):
            self._draw_words(len(self._words) // 2)
            self._pool[:] = pool
            ffi.memmove(points, bytes(ffi.sizeof(points)), ffi.sizeof(points))
        return [
            list(points[first : first + self._table.seats])
            for first in range(0, SEATS_IN_MEMORY * len(cards), SEATS_IN_MEMORY)
        ]

    def _count_deals(self, deals: int, cards: bytes, whim: float, points: Any) -> bool:
        """Return whether there were too few random words."""
        pool, words = ffi.from_buffer("int8_t[]", self._pool), ffi.from_buffer("uint32_t[]", self._words)
        answer = lib.ugo_count_deals(
            self._table, self._sizes, self._others, pool, len(pool), whim, words, len(words), self._used, deals, cards,
            len(cards), points,
        )  # fmt: skip
        return bool(answer)

    def _draw_words(self, count: int) -> None:
        """Draw so many words from the beginning. More words begin with the same ones."""
        self._chance.setstate(self._before)
        self._words = self._chance.getrandbits(32 * count).to_bytes(4 * count, "little")

    def close(self) -> None:
        """Leave the random numbers where so many deals in Python would."""
        self._chance.setstate(self._before)
        if self._used[0]:
            self._chance.getrandbits(32 * self._used[0])
