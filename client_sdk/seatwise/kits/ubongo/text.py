"""The views, moves and layouts of Ubongo as text."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from seatwise.kits.frames import arrange_blocks
from seatwise_referee.games.ubongo import (
    Lay,
    Layout,
    Symbols,
    UbongoCard,
    UbongoMove,
    UbongoView,
    cells,
    layout_from_json,
)
from seatwise_referee.games.ubongo.moves import move_to_json
from seatwise_referee.journal import canonical_json

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


def draw_end(record: Mapping[str, Any], width: int) -> str:
    """Draw the layout of each seat at the end of the last round, with its points, at most `width` characters wide."""
    deal = record["deals"][-1]
    symbols = {UbongoCard.parse(card): each for card, each in deal["symbols"].items()}
    bots = [seat["bot"].removeprefix("bots/").partition("/")[0] for seat in record["seats"]]
    points = record["outcome"]["rounds"][-1]
    heads = [f"{bot}: {score}" for bot, score in zip(bots, points, strict=True)]
    drawn = [draw(layout, symbols) for layout in _last_layouts(record)]
    title = f"Round {deal['round']} of {record['match']}, as it ended:"
    return arrange_blocks("\n\n".join([title, *map("\n".join, zip(heads, drawn, strict=True))]), width) + "\n"


def _last_layouts(record: Mapping[str, Any]) -> list[Layout]:
    """Return every seat's layout from the entry that closes the last round."""
    closing = [entry["layouts"] for entry in record["entries"] if "layouts" in entry]
    return [layout_from_json(layout) for layout in closing[-1]]


def describe_view(view: UbongoView) -> str:
    """Describe what a spectator sees, in one line."""
    laid = " ".join(map(str, view.laid))
    points = " ".join(str(sum(each)) for each in zip(*view.points, strict=True)) or "-"
    return f"round {view.round}  laid {laid}  points {points}"


def describe_move(move: UbongoMove) -> str:
    """Return a move as a short text: the names of the cards that it lays, or what it says."""
    if isinstance(move, Lay):
        return " ".join(str(each.card) for each in move.layout) or "no cards"
    return canonical_json(move_to_json(move)).decode()
