"""Ubongo for people: the layouts of a match as text, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from seatwise.ubongo import Card, Layout, View, draw
from seatwise_referee.games.ubongo import layout_from_json


def final_layouts(record: dict[str, Any]) -> str:
    """What each seat had laid in the last round, with its points."""
    deal = record["deals"][-1]
    symbols = {Card.parse(card): each for card, each in deal["symbols"].items()}
    bots = [seat["bot"].removeprefix("bots/").partition("/")[0] for seat in record["seats"]]
    points = record["outcome"]["rounds"][-1]
    heads = [f"{bot}: {score}" for bot, score in zip(bots, points, strict=True)]
    drawn = [draw(layout, symbols) for layout in _last_layouts(record)]
    title = f"Round {deal['round']} of {record['match']}, as it ended:"
    return "\n".join([title, "", beside(list(zip(heads, drawn, strict=True))), ""])


def _last_layouts(record: dict[str, Any]) -> list[Layout]:
    """The entry that closes a round carries every seat's layout."""
    closing = [entry["layouts"] for entry in record["entries"] if "layouts" in entry]
    return [layout_from_json(layout) for layout in closing[-1]]


def beside(parts: Sequence[tuple[str, str]]) -> str:
    """Drawings side by side, each under its head."""
    columns = [[head, *drawn.splitlines()] for head, drawn in parts]
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        "   ".join(line.ljust(width) for line, width in zip(lines, widths, strict=True)).rstrip()
        for lines in zip_longest(*columns, fillvalue="")
    )


def line_of(view: View) -> str:
    """What a spectator sees, in one line."""
    laid = " ".join(map(str, view.laid))
    points = " ".join(str(sum(each)) for each in zip(*view.points, strict=True)) or "-"
    return f"round {view.round}  laid {laid}  points {points}"
