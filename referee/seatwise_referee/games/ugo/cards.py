"""The 45 land cards, as small ints that read like cards."""

from __future__ import annotations

from enum import Enum
from typing import Final

VALUES: Final = 9
"""Each colour has the values 0 to 8 (U2)."""


class Colour(Enum):
    """The five kinds of land, in the order that breaks ties."""

    RED = "R"
    BLUE = "B"
    GREEN = "G"
    YELLOW = "Y"
    GREY = "K"


COLOURS: Final = tuple(Colour)


class Card(int):
    """A land card, numbered 9 x colour + value: an int wherever speed matters, `R3` to the reader.

    There is one object of each card, in `CARDS`; states, tricks and views all share it.
    """

    __slots__ = ()

    def __new__(cls, number: int) -> Card:
        """The card of that number; `ValueError` beyond 0 to 44."""
        if not 0 <= number < len(CARDS):
            raise ValueError(f"cards are numbered 0 to {len(CARDS) - 1}, not {number}")
        return CARDS[number]

    @classmethod
    def parse(cls, text: str) -> Card:
        """The card that is written so; `ValueError` if none is."""
        if isinstance(text, str) and text in BY_TEXT:
            return BY_TEXT[text]
        raise ValueError(f"{_short(text)} is no card: one of R, B, G, Y, K (grey) and 0 to 8, like R3")

    @property
    def colour(self) -> Colour:
        """The kind of land."""
        return COLOURS[self // VALUES]

    @property
    def value(self) -> int:
        """0 to 8."""
        return self % VALUES

    def __str__(self) -> str:
        return TEXTS[self]

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(TEXTS[self], spec)


def _short(value: object) -> str:
    """Enough of an unknown value to know it by, and never a page of it."""
    return repr(value[:10]) if isinstance(value, str) else type(value).__name__


TEXTS: Final = tuple(f"{colour.value}{value}" for colour in Colour for value in range(VALUES))
"""The cards as text, by number."""

CARDS: Final = tuple(int.__new__(Card, number) for number in range(len(TEXTS)))
"""The cards, by number."""

BY_TEXT: Final = dict(zip(TEXTS, CARDS, strict=True))
"""The cards, by text."""


_BITS: Final = tuple(1 << card for card in CARDS)


def mask_of(cards: list[Card] | tuple[Card, ...]) -> int:
    """A set of cards as an int: bit n stands for card n."""
    return sum(map(_BITS.__getitem__, cards))


_ONE_COLOUR: Final = (1 << VALUES) - 1
COLOUR_MASKS: Final = tuple(_ONE_COLOUR << first for first in range(0, len(CARDS), VALUES))
"""All cards of a colour, by its place in the order of colours."""


def _subsets(colour: int) -> tuple[tuple[Card, ...], ...]:
    """The cards of one colour for each of the 512 sets of its values, rising."""
    cards = CARDS[colour * VALUES : (colour + 1) * VALUES]
    return tuple(
        tuple(card for value, card in enumerate(cards) if subset >> value & 1)
        for subset in range(1 << VALUES)
    )


# Reading a hand out of these tables is five look-ups; bit by bit it costs more than all else in a move.
_RED, _BLUE, _GREEN, _YELLOW, _GREY = map(_subsets, range(len(COLOURS)))


def cards_of(mask: int) -> tuple[Card, ...]:
    """The set as cards, in the order of their numbers."""
    return (
        _RED[mask & _ONE_COLOUR]
        + _BLUE[mask >> 9 & _ONE_COLOUR]
        + _GREEN[mask >> 18 & _ONE_COLOUR]
        + _YELLOW[mask >> 27 & _ONE_COLOUR]
        + _GREY[mask >> 36]
    )
