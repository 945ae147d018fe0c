"""How a game writes its positions for replays: the part of a game's kit that says what lies where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from seatwise_referee.game import Json
from seatwise_referee.journal import canonical_json

if TYPE_CHECKING:
    from seatwise.replay.frames import Frame, TableFacts


class FrameWriter(Protocol):
    """Writes the views of one game as plain JSON, and draws that as text.

    It is given views only, never a state. So a frame cannot hold what no view shows. `views` are those before and after
    a step; the one before is `None` at the first deal.
    """

    def write_table(self, view: Any) -> TableFacts:
        """Return what lies open, from the view of a spectator."""
        ...

    def write_own(self, view: Any) -> Json:
        """Return what only the seat of this view knows; `None` if there is nothing."""
        ...

    def write_round_end(self, before: Any, after: Any) -> TableFacts | None:
        """Return the table as it was when a round ended with this step; `None` if none did."""
        ...

    def write_own_at_round_end(self, before: Any) -> Json:
        """Return what only a seat knows when a round ends, from its view before the last step."""
        ...

    def write_open_move(self, move: Json) -> Json:
        """Return what all seats may know of a move when it was made; `None` if they may know nothing of it."""
        ...

    def describe_move(self, move: Json) -> str:
        """Return a move, or what `write_open_move` left of it, as the end of a sentence: "plays R3"."""
        ...

    def describe_change(self, before: Any, after: Any, names: Sequence[str]) -> str:
        """Return what follows from a step, in whole sentences, such as "bob wins the trick."; "" if nothing does."""
        ...

    def describe_seen_moves(self, before: Any, after: Any, names: Sequence[str]) -> str:
        """Return the moves that a spectator sees between two views, such as "bob plays R3."; "" if it sees none."""
        ...

    def draw_text(self, frame: Frame, names: Sequence[str]) -> str:
        """Draw the position as lines of plain text."""
        ...


class TextFrameWriter:
    """Writes the views of any game, for games that do not draw their own."""

    def write_table(self, view: Any) -> TableFacts:
        """Return the fields of the view as text."""
        return {"text": _describe_view(view)}

    def write_own(self, view: Any) -> Json:
        """Return the fields of the view as text."""
        return {"text": _describe_view(view)}

    def write_round_end(self, before: Any, after: Any) -> TableFacts | None:  # noqa: ARG002  # the protocol has them
        """Return `None`: a game of which nothing is known has no rounds."""
        return None

    def write_own_at_round_end(self, before: Any) -> Json:
        """Return the fields of the view as text."""
        return self.write_own(before)

    def write_open_move(self, move: Json) -> Json:  # noqa: ARG002
        """Return `None`, because the move may be secret."""
        return None

    def describe_move(self, move: Json) -> str:
        """Return the move as records write it."""
        return f"plays {move if isinstance(move, str) else canonical_json(move).decode()}"

    def describe_change(self, before: Any, after: Any, names: Sequence[str]) -> str:  # noqa: ARG002
        """Return nothing."""
        return ""

    def describe_seen_moves(self, before: Any, after: Any, names: Sequence[str]) -> str:  # noqa: ARG002
        """Return nothing."""
        return ""

    def draw_text(self, frame: Frame, names: Sequence[str]) -> str:
        """Return the views as text, one below the other."""
        parts = [str(frame.table.get("text", ""))]
        for name, own in zip(names, frame.own, strict=True):
            if isinstance(own, dict):
                parts.append(f"{name}\n{own.get('text', '')}")
        return "\n\n".join(parts)


def _describe_view(view: Any) -> str:
    if is_dataclass(view):
        return "\n".join(f"{each.name}: {getattr(view, each.name)}" for each in fields(view))
    if isinstance(view, dict):
        return "\n".join(f"{name}: {value}" for name, value in view.items())
    return str(view)


FRAME_WRITER: Final[FrameWriter] = TextFrameWriter()
"""The writer of games that name no other in their kits."""
