"""Writes the positions of games from outside for replays: their drawings, by the author or from the view alone, and sentences."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatwise.kits.frames import (
    INK,
    PAPER,
    RULE,
    SOFT,
    Frame,
    PictureShape,
    SeatPicture,
    TableFacts,
    describe_lead,
    draw_box,
    draw_words,
)
from seatwise_referee.game import Json, Seat
from seatwise_referee.hosted.drawing import describe_drawing, describe_move_json, draw_any_view
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.hosted.hosted_rules import HostedRules
from seatwise_referee.hosted.payload import HostedView

POINTS = "points"
"""The name of the counters of seats that are their points."""

log = logging.getLogger("seatwise")


class HostedFrameWriter:
    """Writes the views of one game from outside. A hook that fails is not asked again, and its game is drawn from its views."""

    def __init__(self, rules: HostedRules, *, has_hooks: bool = True) -> None:
        self._rules = rules
        self._has_hooks = has_hooks
        self._open: list[dict[str, Any]] = []
        """The drawing of the newest table."""

    def write_table(self, view: HostedView) -> TableFacts:
        """Return the drawing of a spectator's view, and the points of all seats if they are drawn."""
        drawing = self._open = json.loads(view.drawing) if view.drawing else self._draw(view)
        points = {
            item["owner"]: item["value"]
            for item in drawing
            if str(item.get("counter")).lower() == POINTS and item.get("owner") is not None
        }
        running = [points.get(seat) for seat in range(len(points))]
        has_all = len(points) > 1 and all(type(each) is int for each in running)
        return {"drawing": drawing, **({"running": running} if has_all else {})}

    def write_own(self, view: HostedView) -> Json:
        """Return what the drawing for a seat has for that seat, after its table was written: the rest lies open."""
        drawing = self._draw(view)
        if not self._is_drawn_by_author:
            drawing = [{**item, "owner": view.seat} for item in drawing if item not in self._open]
        return {"drawing": [item for item in drawing if item.get("owner") == view.seat]}

    @property
    def _is_drawn_by_author(self) -> bool:
        return self._has_hooks and self._rules.game.has_hook("draw")

    def _draw(self, view: HostedView) -> list[dict[str, Any]]:
        if self._has_hooks:
            try:
                text = self._rules.draw_view(view, self._rules.table_sizes[-1])
                drawing: list[dict[str, Any]] = json.loads(text)
                return drawing
            except GameFault as fault:
                self._refuse_hooks(fault)
        return draw_any_view(view.data)

    def narrate_step(
        self, before: HostedView, move: Json, mover: int | None, after: HostedView, names: Sequence[str]
    ) -> str:
        """Return the author's sentence on a step, with the names of the bots; "" if there is none."""
        said = ""
        if self._has_hooks:
            try:
                said = self._rules.narrate_step(before, move, None if mover is None else Seat(mover), after)
            except GameFault as fault:
                self._refuse_hooks(fault)
        for seat, name in enumerate(names):
            said = said.replace(f"{{{seat}}}", name)
        return said

    def _refuse_hooks(self, fault: GameFault) -> None:
        self._has_hooks = False
        log.warning("the game is shown without its own drawing: %s", fault)

    def write_round_end(self, before: HostedView, after: HostedView) -> TableFacts | None:  # noqa: ARG002
        """Return `None`: nothing is known of rounds."""
        return None

    def write_own_at_round_end(self, before: HostedView) -> Json:
        """Return what only a seat knows, as anywhere else."""
        return self.write_own(before)

    def write_open_move(self, move: Json) -> Json:  # noqa: ARG002
        """Return `None`, because the move may be secret."""
        return None

    def describe_change(self, before: HostedView, after: HostedView, names: Sequence[str]) -> str:  # noqa: ARG002
        """Return nothing: the sentence on the step tells it."""
        return ""

    def describe_move(self, move: Json) -> str:
        """Return "plays" and the move."""
        return f"plays {describe_move_json(move)}"

    def describe_seen_moves(self, before: HostedView, after: HostedView, names: Sequence[str]) -> str:  # noqa: ARG002
        """Return the sentence that came with the view."""
        return after.says

    def describe_turn(self, before: TableFacts, after: TableFacts, names: Sequence[str]) -> str:
        """Say who takes the lead, where the game draws points."""
        return describe_lead(before, after, names) if before.get("running") and after.get("running") else ""

    def draw_text(self, frame: Frame, names: Sequence[str]) -> str:
        """Return what lies open, and what each seat has, as text."""
        drawing: list[Mapping[str, Any]] = list(frame.table["drawing"])
        lines = describe_drawing([item for item in drawing if item.get("owner") is None])
        for seat, name in enumerate(names):
            own: Any = frame.own[seat] or frame.table
            mark = ">" if seat in frame.asked else " "
            owned = [item for item in own["drawing"] if item.get("owner") == seat]
            lines += ["", f"{mark} {name}", *(f"    {line}" for line in describe_drawing(owned))]
        return "\n".join(lines)


WIDE, LEAST_WIDE, CARD_WIDE, CARD_HIGH = 480, 300, 32, 44
CARD_COLOURS = {"red": "#b3261e", "blue": "#1f4fa8", "green": "#2f6b1f"}


def draw_seat(frame: Frame, seat: int | None) -> SeatPicture:
    """Return the picture of all that is of this seat, or of none: counters and texts, and below them zones of cards."""
    own: Any = frame.table if seat is None else frame.own[seat] or frame.table
    items = [item for item in own.get("drawing", ()) if item.get("owner") == seat]
    words = " \u00b7 ".join(line for item in items if "zone" not in item for line in describe_drawing([item]))
    shapes = [draw_words(0, 16, words if len(words) < 61 else f"{words[:60].strip()}\u2026", 16, SOFT)]
    x, y, wide = 0.0, 22, max(LEAST_WIDE, min(WIDE, 8.2 * len(words)))
    for item in items:
        if cards := item.get("cards"):
            gap = min(CARD_WIDE + 3, (WIDE - 2 * CARD_WIDE - 14) / max(1, len(cards) - 1))
            long = max(7.5 * len(item["zone"]), (len(cards) - 1) * gap + CARD_WIDE)
            if x and x + long > WIDE:
                x, y = 0.0, y + CARD_HIGH + 22
            shapes += [draw_words(x, y + 13, item["zone"], 13, SOFT), *_draw_cards(cards, x, y + 18, gap)]
            x, wide = x + long + 14, max(wide, x + long)
    return SeatPicture(wide, y + CARD_HIGH + 20, shapes)


def _draw_cards(cards: Sequence[Mapping[str, Any]], x: float, y: float, gap: float) -> Iterator[PictureShape]:
    for place, card in enumerate(cards):
        left, is_down = x + place * gap, card.get("face") == "down"
        yield draw_box(left, y, CARD_WIDE, CARD_HIGH, rx=4, fill=RULE if is_down else PAPER, stroke=SOFT)
        if not is_down:
            colour = CARD_COLOURS.get(card.get("colour", ""), INK)
            middle = {"font_weight": "bold", "text_anchor": "middle"}
            words, size = card["text"][:4], 15 if len(card["text"]) < 3 else 12
            yield draw_words(left + CARD_WIDE / 2, y + 28, words, size, colour, **middle)
