"""Layouts of Ubongo as text."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from seatwise_referee.games.ubongo import Layout, Symbols, UbongoCard, cells

EMPTY_CELL = -1


def draw(layout: Layout, symbols: Mapping[UbongoCard, Symbols]) -> str:
    """Draw a layout as text: each card as a frame around its six symbols.

    Args:
        layout: The cards as they lie.
        symbols: The symbols of each card's side that is up.

    Returns:
        The drawing, in several lines without trailing spaces.

    Raises:
        KeyError: `symbols` lacks a card of the layout.

    Example:
        >>> from seatwise.ubongo import Card, Placement
        >>> one, other = Card.parse("1-01"), Card.parse("1-02")
        >>> layout = (Placement(one, 0, 0, 0), Placement(other, 2, 1, 0))
        >>> print(draw(layout, {one: "ABCDEF", other: "DXFXXX"}))
        +---+---+
        | A   B |
        +       +---+---+
        | C   D | D   X |
        +       +       +
        | E   F | F   X |
        +---+---+       +
                | X   X |
                +---+---+
    """
    if not layout:
        return "(nothing laid)"
    cards, letters = _fill_grid(layout, symbols)
    left, right = min(x for x, _ in cards), max(x for x, _ in cards)
    top, bottom = min(y for _, y in cards), max(y for _, y in cards)
    columns = range(left - 1, right + 2)
    lines = []
    for y in range(top, bottom + 2):
        lines.append(_draw_edge(cards, columns, y))
        if y <= bottom:
            lines.append(_draw_row(cards, letters, columns, y))
    return "\n".join(line.rstrip() for line in lines)


def _fill_grid(
    layout: Layout, symbols: Mapping[UbongoCard, Symbols]
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], str]]:
    """Return two mappings by cell: the card, as its index in the layout, and the symbol."""
    cards: dict[tuple[int, int], int] = {}
    letters: dict[tuple[int, int], str] = {}
    for number, (card, x, y, turn) in enumerate(layout):
        for cell, symbol in zip(cells(x, y, turn), symbols[card], strict=True):
            cards[cell], letters[cell] = number, symbol
    return cards, letters


def _draw_row(
    cards: Mapping[tuple[int, int], int], letters: Mapping[tuple[int, int], str], columns: range, y: int
) -> str:
    """Return a row of symbols, with a vertical bar wherever a card ends."""
    line = ""
    for x, following in pairwise(columns):
        line += f" {letters.get((x, y), ' ')} "
        line += "|" if cards.get((x, y), EMPTY_CELL) != cards.get((following, y), EMPTY_CELL) else " "
    return line[3:]


def _draw_edge(cards: Mapping[tuple[int, int], int], columns: range, y: int) -> str:
    """Return the line above the cells of this row."""
    line = ""
    for x, following in pairwise(columns):
        above, below, beside_above, beside_below = (
            cards.get(cell, EMPTY_CELL) for cell in ((x, y - 1), (x, y), (following, y - 1), (following, y))
        )
        line += "---" if above != below else "   "
        is_corner = len({above, below, beside_above, beside_below}) > 1
        line += "+" if is_corner else " "
    return line[3:]
