"""The 45 land cards, as small ints that print like cards."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")

VALUES_PER_COLOUR: Final = 9
"""Each colour has the values 0 to 8 (U2)."""


class Colour(Enum):
    """The five kinds of land, in the order that breaks ties."""

    RED = "R"
    BLUE = "B"
    GREEN = "G"
    YELLOW = "Y"
    GREY = "K"


COLOURS: Final = tuple(Colour)


class UgoCard(int):
    """A card, as an int from 0 to 44: 9 x colour + value. It prints as `R3`.

    There is one object of each card, in `CARDS`. States, tricks and views share it.

    Example:
        >>> from seatwise.ugo import Card
        >>> card = Card(3)
        >>> card, card.colour, card.value
        (R3, <Colour.RED: 'R'>, 3)
    """

    __slots__ = ()

    def __new__(cls, number: int) -> UgoCard:
        """Return the card of this number.

        Args:
            number: 0 to 44.

        Raises:
            ValueError: There is no card of this number.
        """
        if not 0 <= number < len(CARDS):
            raise ValueError(f"cards are numbered 0 to {len(CARDS) - 1}, not {number}")
        return CARDS[number]

    @classmethod
    def parse(cls, text: str) -> UgoCard:
        """Return the card of this name.

        Args:
            text: Its colour (R, B, G, Y or K for grey) and its value (0 to 8), as in `"R3"`.

        Returns:
            The card.

        Raises:
            ValueError: There is no card of this name.
        """
        if isinstance(text, str) and text in BY_TEXT:
            return BY_TEXT[text]
        raise ValueError(f"{_short_text(text)} is no card: one of R, B, G, Y, K (grey) and 0 to 8, like R3")

    @property
    def colour(self) -> Colour:
        """Its colour."""
        return COLOURS[self // VALUES_PER_COLOUR]

    @property
    def value(self) -> int:
        """Its value, 0 to 8."""
        return self % VALUES_PER_COLOUR

    def __str__(self) -> str:
        return TEXTS[self]

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(TEXTS[self], spec)


def _short_text(value: object) -> str:
    """Return enough of an unknown value to recognise it, and never a page of it."""
    return repr(value[:10]) if isinstance(value, str) else type(value).__name__


TEXTS: Final = tuple(f"{colour.value}{value}" for colour in Colour for value in range(VALUES_PER_COLOUR))
"""The cards as text, by number."""

CARDS: Final = tuple(int.__new__(UgoCard, number) for number in range(len(TEXTS)))
"""The cards, by number."""

BY_TEXT: Final = dict(zip(TEXTS, CARDS, strict=True))
_BITS: Final = tuple(1 << card for card in CARDS)


def mask_of(cards: Iterable[UgoCard]) -> int:
    """Return a set of cards as an int: bit n is card n."""
    return sum(map(_BITS.__getitem__, cards))


_ONE_COLOUR: Final = (1 << VALUES_PER_COLOUR) - 1
COLOUR_MASKS: Final = tuple(_ONE_COLOUR << first for first in range(0, len(CARDS), VALUES_PER_COLOUR))
"""All cards of a colour, by its place in the order of colours."""


def subset_reader(items: Sequence[T]) -> Callable[[int], tuple[T, ...]]:
    """Return a function from a set of cards to the items at their numbers, in the order of numbers.

    It makes five look-ups, one for each colour. Bit by bit it would cost more than the rest of a move.
    """
    red, blue, green, yellow, grey = (
        _subset_items(items[first : first + VALUES_PER_COLOUR])
        for first in range(0, len(CARDS), VALUES_PER_COLOUR)
    )

    def read(mask: int) -> tuple[T, ...]:
        return (
            red[mask & 511]
            + blue[mask >> 9 & 511]
            + green[mask >> 18 & 511]
            + yellow[mask >> 27 & 511]
            + grey[mask >> 36]
        )

    return read


def _subset_items(items: Sequence[T]) -> list[tuple[T, ...]]:
    """Return all 512 subsets of nine items: bit n of an index says whether the n-th item is in that subset."""
    return [
        tuple(item for bit, item in enumerate(items) if subset >> bit & 1)
        for subset in range(1 << VALUES_PER_COLOUR)
    ]


cards_of: Final = subset_reader(CARDS)
"""The cards of a set, in the order of their numbers."""
