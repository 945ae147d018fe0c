"""The 108 cards of three decks, as small ints that print like cards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

DECKS: Final = 3
CARDS_PER_DECK: Final = 36
"""How many cards each deck has (K1)."""

HAND_SIZE: Final = 9
"""How many cards each seat is dealt (K3)."""

SYMBOLS_PER_SIDE: Final = 6
"""The symbols on each side of a card: three rows of two."""

Symbols: TypeAlias = str
"""The six symbols of a side, row by row, one character each. Only whether two symbols are equal counts."""


class UbongoCard(int):
    """A card, as an int from 0 to 107: 36 x (deck - 1) + its number in the deck - 1. It prints as `1-01`.

    There is one object of each card, in `CARDS`. States and views share it.

    Example:
        >>> from seatwise.ubongo import Card
        >>> Card(40), int(Card.parse("2-05"))
        (2-05, 40)
    """

    __slots__ = ()

    def __new__(cls, number: int) -> UbongoCard:
        """Return the card of this number.

        Args:
            number: 0 to 107.

        Raises:
            ValueError: There is no card of this number.
        """
        if not 0 <= number < len(CARDS):
            raise ValueError(f"cards are numbered 0 to {len(CARDS) - 1}, not {number}")
        return CARDS[number]

    @classmethod
    def parse(cls, text: str) -> UbongoCard:
        """Return the card of this name.

        Args:
            text: Its deck and its number in the deck, as in `"1-01"`.

        Returns:
            The card.

        Raises:
            ValueError: There is no card of this name.
        """
        if isinstance(text, str) and text in BY_TEXT:
            return BY_TEXT[text]
        raise ValueError(f"{_short_text(text)} is no card: one of {TEXTS[0]} to {TEXTS[-1]}")

    def __str__(self) -> str:
        return TEXTS[self]

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(TEXTS[self], spec)


def _short_text(value: object) -> str:
    """Return enough of an unknown value to recognise it, and never a page of it."""
    return repr(value[:10]) if isinstance(value, str) else type(value).__name__


TEXTS: Final = tuple(
    f"{deck}-{number:02}" for deck in range(1, DECKS + 1) for number in range(1, CARDS_PER_DECK + 1)
)
"""The cards as text, by number."""

CARDS: Final = tuple(int.__new__(UbongoCard, number) for number in range(len(TEXTS)))
"""The cards, by number."""

BY_TEXT: Final = dict(zip(TEXTS, CARDS, strict=True))


class Side(NamedTuple):
    """One side of a card. A seat sees no more of the card."""

    card: UbongoCard
    symbols: Symbols
    """The six symbols of the side that is up."""

    def __str__(self) -> str:
        return str(self.card)


def deck_of_round(round_number: int) -> int:
    """Return the deck of a round: deck 1 for the rounds 1 and 2, deck 2 for 3 and 4, deck 3 for 5 and 6 (K1)."""
    return (round_number + 1) // 2


def texts_of_deck(deck: int) -> Sequence[str]:
    """Return the cards of deck 1, 2 or 3 as text, in their order."""
    return TEXTS[(deck - 1) * CARDS_PER_DECK : deck * CARDS_PER_DECK]
