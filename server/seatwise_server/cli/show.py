"""Draws Ubongo as text: the layouts of a match, side by side if the terminal is wide enough."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from seatwise.ubongo import Card, Layout, View, draw
from seatwise_referee.games.ubongo import layout_from_json

GAP = "   "


def final_layouts(record: dict[str, Any]) -> str:
    """Draw the layout of each seat at the end of the last round, with its points, as wide as the terminal."""
    deal = record["deals"][-1]
    symbols = {Card.parse(card): each for card, each in deal["symbols"].items()}
    bots = [seat["bot"].removeprefix("bots/").partition("/")[0] for seat in record["seats"]]
    points = record["outcome"]["rounds"][-1]
    heads = [f"{bot}: {score}" for bot, score in zip(bots, points, strict=True)]
    drawn = [draw(layout, symbols) for layout in _last_layouts(record)]
    title = f"Round {deal['round']} of {record['match']}, as it ended:"
    rows = rows_of(list(zip(heads, drawn, strict=True)), shutil.get_terminal_size().columns)
    return "\n".join([title, "", *(f"{row}\n" for row in rows)])


def _last_layouts(record: dict[str, Any]) -> list[Layout]:
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


def line_of(view: View) -> str:
    """Describe what a spectator sees, in one line."""
    laid = " ".join(map(str, view.laid))
    points = " ".join(str(sum(each)) for each in zip(*view.points, strict=True)) or "-"
    return f"round {view.round}  laid {laid}  points {points}"
