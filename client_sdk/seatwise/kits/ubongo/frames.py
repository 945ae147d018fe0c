"""Writes the positions of Ubongo for replays. Each round is a race: the layouts at its end, and when each seat called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from seatwise.kits.frames import INK, PAPER, SeatPicture, describe_lead, draw_box, draw_words
from seatwise.kits.ubongo.text import draw
from seatwise_referee.game import Json
from seatwise_referee.games.ubongo import (
    BuiltLayout,
    Layout,
    Side,
    Touch,
    UbongoCard,
    UbongoView,
    is_fitting,
    layout_from_json,
    layout_to_json,
    symbols_in,
    touch,
)
from seatwise_referee.games.ubongo.geometry import cells

if TYPE_CHECKING:
    from seatwise.kits.frames import Frame, FrameWriter, TableFacts


class UbongoFrameWriter:
    """Writes views of Ubongo: who builds, and at the end of a round what each seat has built."""

    def write_table(self, view: UbongoView) -> TableFacts:
        """Return who builds, and how many cards each seat has laid."""
        return {
            "round": view.round,
            "rounds": view.rounds,
            "points": [list(each) for each in view.points],
            "running": list(view.laid),
            "laid": list(view.laid),
            "building": list(view.building),
            "offers": list(view.offers),
            "out": list(view.out),
            "built": None,
        }

    def write_own(self, view: UbongoView) -> Json:
        """Return the nine sides of the hand, and the layout."""
        return {"hand": list(map(_write_side, view.hand)), "layout": layout_to_json(view.layout)}

    def write_round_end(self, before: UbongoView, after: UbongoView) -> TableFacts | None:
        """Return what each seat had built when the round ended, whether it fits, and whether the seat had called."""
        if len(after.points) == len(before.points):
            return None
        return {
            "round": before.round,
            "rounds": after.rounds,
            "points": [list(each) for each in after.points],
            "laid": [len(built.layout) for built in after.last_round],
            "building": [],
            "offers": [],
            "out": list(before.out),
            "built": list(map(_write_built, after.last_round)),
        }

    def write_own_at_round_end(self, before: UbongoView) -> Json:
        """Return the hand. The table shows the cards of it that are laid."""
        return {"hand": list(map(_write_side, before.hand)), "layout": []}

    def write_open_move(self, move: Json) -> Json:
        """Return the move, and of a layout only how many cards it has: a layout is secret until the round is over."""
        match move:
            case {"lay": [*layout]}:
                return {"laid": len(layout)}
        return move

    def describe_move(self, move: Json) -> str:
        """Return what the seat does, such as "lays 5 cards" or "calls"."""
        match move:
            case {"lay": [*layout]}:
                return _describe_lay(len(layout))
            case {"laid": int(count)}:
                return _describe_lay(count)
            case {"call": True}:
                return "calls"
            case {"offer_end": bool(on)}:
                return "agrees to end the round" if on else "withdraws its offer"
        return "builds no more"

    def describe_change(self, before: UbongoView, after: UbongoView, names: Sequence[str]) -> str:
        """Say whose call was wrong, and what the round has brought."""
        if len(after.points) > len(before.points):
            scored = ", ".join(f"{name} {own}" for name, own in zip(names, after.points[-1], strict=True))
            return f"Round {before.round} is over: {scored}."
        gone = [names[seat] for seat in after.out if seat not in before.out]
        return " ".join(f"The cards of {name} do not fit: it is out of this round." for name in gone)

    def describe_seen_moves(self, before: UbongoView, after: UbongoView, names: Sequence[str]) -> str:
        """Say who has agreed to end the round. Layouts are secret until it is over."""
        if after.round != before.round:
            return ""
        agreed = [names[seat] for seat in after.offers if seat not in before.offers]
        return " ".join(f"{name} agrees to end the round." for name in agreed)

    def describe_turn(self, before: TableFacts, after: TableFacts, names: Sequence[str]) -> str:
        """Say who takes the lead when a round is over: what is laid need not fit."""
        return describe_lead(before, after, names, is_running=False)

    def draw_text(self, frame: Frame, names: Sequence[str]) -> str:
        """Draw the layouts, or the hands."""
        table = frame.table
        lines = [f"Round {table['round']} of {table['rounds']}"]
        for seat, name in enumerate(names):
            lines += ["", *_draw_seat(frame, seat, name)]
        return "\n".join(lines)


def _describe_lay(count: int) -> str:
    return f"lays {count} {'card' if count == 1 else 'cards'}"


def _write_side(side: Side) -> Json:
    return [str(side.card), side.symbols]


def _write_built(built: BuiltLayout) -> dict[str, Any]:
    symbols = symbols_in(built.sides)
    return {
        "layout": layout_to_json(built.layout),
        "sides": list(map(_write_side, built.sides)),
        "called": built.has_called,
        "fits": is_fitting(built.layout, symbols),
        "wrong": [list(map(str, pair)) for pair in wrong_pairs(built.layout, symbols)],
    }


def wrong_pairs(layout: Layout, symbols: dict[UbongoCard, str]) -> Iterable[tuple[UbongoCard, UbongoCard]]:
    """Return the pairs of cards that touch and do not fit (K7)."""
    return [
        (one.card, other.card)
        for one, other in combinations(layout, 2)
        if touch(one, symbols[one.card], other, symbols[other.card]) is Touch.WRONG
    ]


def _draw_seat(frame: Frame, seat: int, name: str) -> list[str]:
    table, own = frame.table, frame.own[seat]
    head = f"{'>' if seat in frame.asked else ' '} {name}, {frame.points[seat]} points"
    if table["built"]:
        return [f"{head}: {_describe_built(table, seat)}", *_indent(_draw_built(table["built"][seat]))]
    state = f"{_describe_lay(table['laid'][seat])}{', out of this round' if seat in table['out'] else ''}"
    if not isinstance(own, dict):
        return [f"{head}: {state}"]
    hand = [f"{side[0]} {side[1]}" for side in own["hand"]]  # type: ignore[union-attr,index]
    return [f"{head}: {state}", *_indent("\n".join(("  ".join(hand[:5]), "  ".join(hand[5:]))))]


def _describe_built(table: TableFacts, seat: int) -> str:
    built = table["built"][seat]
    called = "called, " if built["called"] else ""
    fits = "they fit" if built["fits"] else "they do not fit"
    laid = f"{len(built['layout'])} cards laid, {fits}" if built["layout"] else "nothing laid"
    return f"{called}{laid}: {table['points'][-1][seat]} in this round"


def _draw_built(built: dict[str, Any]) -> str:
    symbols = {UbongoCard.parse(card): letters for card, letters in built["sides"]}
    return draw(layout_from_json(built["layout"]), symbols)


def _indent(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]


FRAME_WRITER: Final[FrameWriter] = UbongoFrameWriter()


_COLOURS = ("#c8452f", "#2f66b8", "#3f7d2e", "#a87f00", "#8148b8", "#0a7f7b", "#b03a76", INK)
SYMBOL_COLOURS = dict(zip("ABCDEFGH", _COLOURS, strict=True))


def draw_seat(frame: Frame, seat: int) -> SeatPicture:
    """Return the picture of a layout: that of the finished round, or what the seat lays now if the viewpoint may know it."""
    table: Any = frame.table
    own: Any = frame.own[seat]
    if built := table.get("built"):
        layout, sides = built[seat]["layout"], dict(built[seat]["sides"])
    else:
        layout, sides = (own["layout"], dict(own["hand"])) if own else ([], {})
    found = {
        (cell, symbol) for card, *at in layout for cell, symbol in zip(cells(*at), sides[card], strict=True)
    }
    if not found:
        return SeatPicture(1, 1, [])
    left, top = (min(cell[axis] for cell, _ in found) for axis in (0, 1))
    right, bottom = (max(cell[axis] for cell, _ in found) + 1 for axis in (0, 1))
    shapes = []
    for _, x, y, turn in layout:
        wide, high = (3, 2) if turn % 2 else (2, 3)
        place = ((x - left) * 20 + 1, (y - top) * 20 + 1, wide * 20 - 2, high * 20 - 2)
        shapes.append(draw_box(*place, rx=4, fill=PAPER, stroke=INK))
    for (x, y), symbol in sorted(found):
        at, colour = ((x - left) * 20 + 10, (y - top) * 20 + 16), SYMBOL_COLOURS.get(symbol, INK)
        shapes.append(draw_words(*at, symbol, 15, colour, font_weight="bold", text_anchor="middle"))
    return SeatPicture(max((right - left) * 20, 120), max((bottom - top) * 20, 80), shapes)
