"""How cards lie on the table, and whether those that touch fit.

A card is three rows of two symbols on a grid. x grows to the right, y downwards. A placement names the top-left cell
of the card as it lies, and its quarter turns clockwise.

Two cards touch along at most one straight stretch. If it is two symbols long and both pairs are equal, they fit. If
it is one or three symbols long, they never fit. Corners do not count. These are the rules K7 and K8.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seatwise_referee.games.ubongo.cards import SYMBOLS_PER_SIDE, Symbols, UbongoCard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

GRID_COLUMNS: Final = 2
GRID_ROWS: Final = 3
TURNS: Final = 4

BOUND: Final = 30
"""x and y go from -30 to 30. Nine cards in a row that starts at 0 end before that on either side."""


class Placement(NamedTuple):
    """A card, and where it lies."""

    card: UbongoCard
    x: int
    """The column of its top-left cell, as it lies; x grows to the right, from -30 to 30."""

    y: int
    """The row of its top-left cell, as it lies; y grows downwards, from -30 to 30."""

    turn: int
    """Quarter turns clockwise, 0 to 3."""


Layout: TypeAlias = tuple[Placement, ...]
"""All cards that a seat has laid. Their order has no meaning."""


class Touch(Enum):
    """The relation of two cards."""

    APART = "apart"
    FITTING = "fitting"
    WRONG = "wrong"
    OVERLAPPING = "overlapping"


def cells(x: int, y: int, turn: int) -> list[tuple[int, int]]:
    """Return the cells of a card.

    Args:
        x: The column of its top-left cell, as it lies.
        y: The row of its top-left cell, as it lies.
        turn: Quarter turns clockwise, 0 to 3.

    Returns:
        The cell `(x, y)` of each of its six symbols, in the order of the symbols.

    Example:
        >>> cells(0, 0, 1)
        [(2, 0), (2, 1), (1, 0), (1, 1), (0, 0), (0, 1)]
    """
    return [(x + dx, y + dy) for dx, dy in _CELLS[turn]]


def _cell_at(symbol: int, turn: int) -> tuple[int, int]:
    """Return the cell of a symbol, relative to the top-left cell of the turned card."""
    x, y = symbol % GRID_COLUMNS, symbol // GRID_COLUMNS
    wide, high = GRID_COLUMNS, GRID_ROWS
    for _ in range(turn):
        x, y = high - 1 - y, x
        wide, high = high, wide
    return x, y


_CELLS: Final = tuple(
    tuple(_cell_at(symbol, turn) for symbol in range(SYMBOLS_PER_SIDE)) for turn in range(TURNS)
)

# --- Two cards -----------------------------------------------------------------------------------------
#
# The contact of two cards is looked up by their turns and by the step from one to the other. A step is one number,
# because such a look-up takes less than half the time. A column counts so much that within the bounds no far step
# has the number of a near one.

_COLUMN: Final = 4 * BOUND + 8

_Contact: TypeAlias = tuple[int, int, int, int]
"""Where two cards touch along two symbols: the two symbols of one card, then those of the other that meet them."""

_NEVER: Final[_Contact] = (-1, -1, -1, -1)
"""The contact of two cards that touch along one symbol or three."""

_OVERLAP: Final[_Contact] = (-2, -2, -2, -2)


def _make_contact(turn: int, x: int, y: int, other_turn: int) -> _Contact | None:
    """Return the contact of a card at (0, 0) and another at (x, y); `None` if they do not touch."""
    own, others = cells(0, 0, turn), cells(x, y, other_turn)
    if set(own) & set(others):
        return _OVERLAP
    meeting = [
        (one, other)
        for one, (x1, y1) in enumerate(own)
        for other, (x2, y2) in enumerate(others)
        if abs(x1 - x2) + abs(y1 - y2) == 1
    ]
    if len(meeting) != 2:
        return _NEVER if meeting else None
    (first, meets_first), (second, meets_second) = meeting
    return first, second, meets_first, meets_second


_NEAR: Final = range(-GRID_ROWS, GRID_ROWS + 1)

_CONTACTS: Final = tuple(
    {
        x * _COLUMN + y: contact
        for x in _NEAR
        for y in _NEAR
        if (contact := _make_contact(turn, x, y, other_turn)) is not None
    }
    for turn in range(TURNS)
    for other_turn in range(TURNS)
)
"""The contacts by 4 x the turn of one card + the turn of the other, then by the step from one to the other."""


def touch(one: Placement, symbols: Symbols, other: Placement, other_symbols: Symbols) -> Touch:
    """Return the relation of two cards (K7).

    Args:
        one: Where the first card lies.
        symbols: The symbols of its side that is up.
        other: Where the second card lies.
        other_symbols: The symbols of its side that is up.

    Returns:
        Whether the two cards are apart, fit, touch wrongly or overlap.

    Example:
        >>> from seatwise.ubongo import Card
        >>> one, other = Placement(Card(0), 0, 0, 0), Placement(Card(1), 2, 1, 0)
        >>> touch(one, "ABCDEF", other, "DXFXXX"), touch(one, "ABCDEF", other, "DXXXXX")
        (<Touch.FITTING: 'fitting'>, <Touch.WRONG: 'wrong'>)
    """
    step = (other.x - one.x) * _COLUMN + other.y - one.y
    contact = _CONTACTS[one.turn * TURNS + other.turn].get(step)
    if contact is None:
        return Touch.APART
    if contact is _OVERLAP:
        return Touch.OVERLAPPING
    return Touch.FITTING if _is_fit(contact, symbols, other_symbols) else Touch.WRONG


def _is_fit(contact: _Contact, symbols: Symbols, other_symbols: Symbols) -> bool:
    first, second, meets_first, meets_second = contact
    return (
        first >= 0
        and symbols[first] == other_symbols[meets_first]
        and symbols[second] == other_symbols[meets_second]
    )


_BESIDE: Final = tuple(
    tuple(
        (x, y, other_turn, contact)
        for other_turn in range(TURNS)
        for x in _NEAR
        for y in _NEAR
        if (contact := _make_contact(turn, x, y, other_turn)) is not None and contact[0] >= 0
    )
    for turn in range(TURNS)
)
"""By turn, the 28 ways in which another card can touch along two symbols."""


def fitting_beside(
    placed: Placement, symbols: Symbols, card: UbongoCard, card_symbols: Symbols
) -> Iterator[Placement]:
    """Find every place in which a card fits beside a placed one.

    Other cards on the table and the bounds of the table are ignored.

    Args:
        placed: Where the placed card lies.
        symbols: The symbols of its side that is up.
        card: The card to place.
        card_symbols: The symbols of its side that is up.

    Yields:
        Each placement of `card` that fits.

    Example:
        >>> from seatwise.ubongo import Card
        >>> next(fitting_beside(Placement(Card(0), 0, 0, 0), "ABCDEF", Card(1), "DXFXXX"))
        Placement(card=1-02, x=2, y=1, turn=0)
    """
    for x, y, turn, contact in _BESIDE[placed.turn]:
        if _is_fit(contact, symbols, card_symbols):
            yield Placement(card, placed.x + x, placed.y + y, turn)


# --- Layouts -------------------------------------------------------------------------------------------


def is_fitting(layout: Sequence[Placement], symbols: Mapping[UbongoCard, Symbols]) -> bool:
    """Return whether a layout fits: all cards that touch fit, none overlap, and all are connected (K7, K8).

    Args:
        layout: The cards as they lie. All must lie within the bounds.
        symbols: The symbols of each card's side that is up.

    Returns:
        True if the layout fits. A layout of one card fits, and so does an empty layout.

    Raises:
        KeyError: `symbols` lacks a card of the layout.

    Example:
        >>> from seatwise.ubongo import Card
        >>> is_fitting([Placement(Card(0), 0, 0, 0)], {Card(0): "ABCDEF"})
        True
    """
    contacts, column = _CONTACTS, _COLUMN
    placed: list[tuple[int, int, Symbols]] = []
    groups: list[int] = []  # connected cards so far, each group a set of bits
    for number, (card, x, y, turn) in enumerate(layout):
        position, own = x * column + y, symbols[card]
        joined = 0
        for other, (other_position, other_turn, others) in enumerate(placed):
            contact = contacts[other_turn + turn].get(position - other_position)
            if contact is not None:
                first, second, meets_first, meets_second = contact
                if first < 0 or others[first] != own[meets_first] or others[second] != own[meets_second]:
                    return False
                joined |= 1 << other
        groups = _with_group(groups, joined, 1 << number)
        placed.append((position, TURNS * turn, own))
    return len(groups) < 2


def _with_group(groups: list[int], joined: int, new: int) -> list[int]:
    """Return the groups after a new card was joined to some of the old cards."""
    if len(groups) == 1 and joined:  # so it is when cards are named in the order in which they were laid
        return [groups[0] | new]
    apart = []
    for group in groups:
        if group & joined:
            new |= group
        else:
            apart.append(group)
    apart.append(new)
    return apart


def overlapping(layout: Sequence[Placement]) -> tuple[Placement, Placement] | None:
    """Find two cards that overlap.

    Args:
        layout: The cards as they lie.

    Returns:
        The first two placements that overlap; `None` if none do.

    Example:
        >>> from seatwise.ubongo import Card
        >>> overlapping([Placement(Card(0), 0, 0, 0), Placement(Card(1), 2, 0, 0)]) is None
        True
    """
    contacts, column = _CONTACTS, _COLUMN
    placed: list[tuple[int, int]] = []
    for number, (_, x, y, turn) in enumerate(layout):
        position = x * column + y
        for other, (other_position, other_turn) in enumerate(placed):
            if contacts[other_turn + turn].get(position - other_position) is _OVERLAP:
                return layout[other], layout[number]
        placed.append((position, TURNS * turn))
    return None
