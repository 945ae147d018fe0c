"""The 45 land cards, as small ints that read like cards."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")

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
    """A card, as an int from 0 to 44: 9 x colour + value. It prints as `R3`.

    There is one object of each card, in `CARDS`. States, tricks and views share it.

    Example:
        >>> card = Card(3)
        >>> card, card.colour, card.value
        (R3, <Colour.RED: 'R'>, 3)
    """

    __slots__ = ()

    def __new__(cls, number: int) -> Card:
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
    def parse(cls, text: str) -> Card:
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
        raise ValueError(f"{_short(text)} is no card: one of R, B, G, Y, K (grey) and 0 to 8, like R3")

    @property
    def colour(self) -> Colour:
        """Its colour."""
        return COLOURS[self // VALUES]

    @property
    def value(self) -> int:
        """Its value, 0 to 8."""
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


def mask_of(cards: Iterable[Card]) -> int:
    """A set of cards as an int: bit n stands for card n."""
    return sum(map(_BITS.__getitem__, cards))


_ONE_COLOUR: Final = (1 << VALUES) - 1
COLOUR_MASKS: Final = tuple(_ONE_COLOUR << first for first in range(0, len(CARDS), VALUES))
"""All cards of a colour, by its place in the order of colours."""


def reader(items: Sequence[T]) -> Callable[[int], tuple[T, ...]]:
    """A function from a set of cards to what stands for each of them in `items`, in the order of numbers.

    Five look-ups, one a colour, for bit by bit it would cost more than all else in a move.
    """
    red, blue, green, yellow, grey = (
        _subsets(items[first : first + VALUES]) for first in range(0, len(CARDS), VALUES)
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


def _subsets(items: Sequence[T]) -> list[tuple[T, ...]]:
    """What is in each of the 512 sets of nine items; bit n of its place says whether the n-th is."""
    return [
        tuple(item for bit, item in enumerate(items) if subset >> bit & 1) for subset in range(1 << VALUES)
    ]


cards_of: Final = reader(CARDS)
"""The cards of a set, in the order of their numbers."""
