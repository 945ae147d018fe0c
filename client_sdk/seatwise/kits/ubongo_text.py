"""Ubongo as text: a view and a move in one line, and the layouts of a match, side by side if there is room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from seatwise.drawing import draw
from seatwise_referee.games.ubongo import Lay, Layout, UbongoCard, UbongoMove, UbongoView, layout_from_json
from seatwise_referee.games.ubongo.moves import move_to_json
from seatwise_referee.journal import canonical_json

GAP = "   "


def draw_end(record: Mapping[str, Any], width: int) -> str:
    """Draw the layout of each seat at the end of the last round, with its points, at most `width` characters wide."""
    deal = record["deals"][-1]
    symbols = {UbongoCard.parse(card): each for card, each in deal["symbols"].items()}
    bots = [seat["bot"].removeprefix("bots/").partition("/")[0] for seat in record["seats"]]
    points = record["outcome"]["rounds"][-1]
    heads = [f"{bot}: {score}" for bot, score in zip(bots, points, strict=True)]
    drawn = [draw(layout, symbols) for layout in _last_layouts(record)]
    title = f"Round {deal['round']} of {record['match']}, as it ended:"
    rows = rows_of(list(zip(heads, drawn, strict=True)), width)
    return "\n".join([title, "", *(f"{row}\n" for row in rows)])


def _last_layouts(record: Mapping[str, Any]) -> list[Layout]:
    """Return every seat's layout from the entry that closes the last round."""
    closing = [entry["layouts"] for entry in record["entries"] if "layouts" in entry]
    return [layout_from_json(layout) for layout in closing[-1]]


def rows_of(parts: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield rows of drawings, each under its head: as many side by side as fit into `width` characters."""
    row: list[list[str]] = []
    for head, drawn in parts:
        column = [head, *drawn.splitlines()]
        if row and _width_of([*row, column]) > width:
            yield _join_columns(row)
            row = []
        row.append(column)
    yield _join_columns(row)


def _width_of(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) for column in columns) + len(GAP) * (len(columns) - 1)


def _join_columns(columns: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        GAP.join(line.ljust(width) for line, width in zip(lines, widths, strict=True)).rstrip()
        for lines in zip_longest(*columns, fillvalue="")
    )


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
