"""The positions of a match for replays, and how the kit of a game writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from seatwise_referee.game import Json, Seat

ALL_OPEN: Final = "all"
"""The viewpoint that sees every hand and every clock: for matches that are over."""

SPECTATOR: Final = "spectator"
"""The viewpoint that sees only what lies open."""

Viewpoint: TypeAlias = Seat | int | Literal["all", "spectator"]
"""The limit of what a reader may see: all, what lies open, or what the bot of one seat knew."""

TableFacts: TypeAlias = Mapping[str, Any]
"""All that lies open, as the game writes it. Where a game has them, `round` is the number of the round, from 1, and `rounds` is
how many the match has. `points` are the points of each finished round, by seat. `running` is what the round that is played
would bring each seat if it ended now.
"""


@dataclass(frozen=True, slots=True)
class PlayedMove:
    """A move of one seat, as the record has it."""

    seat: Seat
    """The seat that moved, or for which the referee moved."""

    move: Json
    """The move, as journals and records write it."""

    charged_ms: int | None
    """The time that it cost the seat, in milliseconds; `None` if it cost none, or if the viewpoint may not know it."""


@dataclass(frozen=True, slots=True)
class SeatTimes:
    """The times of one seat so far, in milliseconds."""

    bank_ms: int
    """The rest of its bank."""

    used_ms: int
    """The sum of all its charges."""

    longest_ms: int
    """Its longest charge."""

    strikes: int
    """How often its time ran out."""

    rejections: int
    """How many illegal moves it made."""


@dataclass(frozen=True, slots=True)
class OpenedHands:
    """The hands of a finished round whose cards are out of play."""

    round: int
    """The number of the round, from 1."""

    hands: tuple[tuple[tuple[str, str], ...], ...]
    """By seat, the cards as records write them, each with its symbols; "" where a game has none."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A match after one step: who acted, what lies where, and who is asked now."""

    kind: str
    """The kind of the step: the kind of its journal entry, or "round" for a new round after the first."""

    says: str
    """The step in one or two sentences, for lists of moves and for screen readers."""

    asked: tuple[Seat, ...]
    """The seats that are asked now, in their order."""

    moves: tuple[PlayedMove, ...]
    """The moves of this step; none if it is a deal, or the end."""

    points: tuple[int, ...]
    """The points of all finished rounds, by seat."""

    table: TableFacts
    """All that lies open, as the game writes it."""

    own: tuple[Json, ...]
    """By seat, what that seat alone may know, such as its hand; `None` if the viewpoint may not know it."""

    times: tuple[SeatTimes | None, ...]
    """The times by seat; `None` if the viewpoint may not know them."""

    left: tuple[str, ...]
    """By seat, the `Ending` with which it left the match; empty if it plays."""

    seq: int | None = None
    """The number of the journal entry; `None` if the viewpoint may not know all entries."""

    at_ms: int | None = None
    """When it happened, in milliseconds since the match was opened; `None` where `seq` is."""

    hints: tuple[str, ...] = ()
    """By seat, what a sample bot would play now, such as "counting plays R3"; empty for a seat that is not asked, or whose
    hand the viewpoint may not know. No elements if hints were not asked for.
    """

    turn: str = ""
    """A sentence where the match turns with this step, such as "bob takes the lead."; empty where it does not."""

    is_other_than_hint: bool = False
    """Whether the seat made another move than the hint of the frame before."""

    opened: tuple[OpenedHands, ...] = ()
    """The hands that the rules opened with this step, for all to see; only in frames of a match that is watched live."""

    def to_json(self) -> dict[str, Any]:
        """Return the frame as JSON. Its keys are the names of the fields. The values belong to the frame: change none."""
        written = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("moves", "times", "opened"):  # a copy of all the rest would take longer than to make it
            written[name] = [asdict(each) if each else None for each in written[name]]
        return written


def is_open_to(viewpoint: Viewpoint, seat: int) -> bool:
    """Return whether this viewpoint may know what only the bot of that seat knew."""
    return viewpoint in (ALL_OPEN, seat)


INK, SOFT, PAPER, RULE = "#1d2327", "#545e65", "#fbfaf7", "#cfcfc6"
"""The colours of pictures: of words, of less important words, of the ground, of thin lines."""


class PictureShape(NamedTuple):
    """One element of SVG; `text_anchor` stands for text-anchor."""

    name: str
    attributes: dict[str, float | str]
    words: str = ""


class SeatPicture(NamedTuple):
    """The cards that lie before one seat, as a picture."""

    width: float
    height: float
    shapes: list[PictureShape]


def draw_box(
    x: float, y: float, width: float, height: float, *, rx: float, fill: str, stroke: str
) -> PictureShape:
    """Return a box with round corners."""
    return PictureShape(
        "rect", {"x": x, "y": y, "width": width, "height": height, "rx": rx, "fill": fill, "stroke": stroke}
    )


def draw_words(x: float, y: float, words: str, size: float, fill: str, **more: str) -> PictureShape:
    """Return a line of text."""
    return PictureShape("text", dict(x=x, y=y, font_size=size, fill=fill, **more), words)


class FrameWriter(Protocol):
    """Writes the views of one game as plain JSON, and draws that as text.

    It is given views only, never a state. So a frame cannot hold what no view shows. `views` are those before and after
    a step; the one before is `None` at the first deal.
    """

    def write_table(self, view: Any) -> TableFacts:
        """Return what lies open, from the view of a spectator."""

    def write_own(self, view: Any) -> Json:
        """Return what only the seat of this view knows; `None` if there is nothing."""

    def write_round_end(self, before: Any, after: Any) -> TableFacts | None:
        """Return the table as it was when a round ended with this step; `None` if none did."""

    def write_own_at_round_end(self, before: Any) -> Json:
        """Return what only a seat knows when a round ends, from its view before the last step."""

    def write_open_move(self, move: Json) -> Json:
        """Return what all seats may know of a move when it was made; `None` if they may know nothing of it."""

    def describe_move(self, move: Json) -> str:
        """Return a move, or what `write_open_move` left of it, as the end of a sentence: "plays R3"."""

    def describe_change(self, before: Any, after: Any, names: Sequence[str]) -> str:
        """Return what follows from a step, in whole sentences, such as "bob wins the trick."; "" if nothing does."""

    def describe_seen_moves(self, before: Any, after: Any, names: Sequence[str]) -> str:
        """Return the moves that a spectator sees between two views, such as "bob plays R3."; "" if it sees none."""

    def describe_turn(self, before: TableFacts, after: TableFacts, names: Sequence[str]) -> str:
        """Return a sentence where the match turns between two tables; "" where it does not."""

    def draw_text(self, frame: Frame, names: Sequence[str]) -> str:
        """Draw the position as lines of plain text."""


@runtime_checkable
class Narrator(Protocol):
    """A `FrameWriter` whose game tells of its steps itself."""

    def narrate_step(
        self, before: Any, move: Json, mover: int | None, after: Any, names: Sequence[str]
    ) -> str:
        """Return a sentence on a step, given what its audience was shown before and after it; "" for the usual one.

        `move` and `mover` are `None` for a step in which several seats have chosen at once.
        """


def count_totals(table: TableFacts, seats: int, *, is_running: bool = True) -> tuple[int, ...]:
    """Return the points of each seat so far. `is_running` adds those of the round that is played."""
    rounds = [
        *(table.get("points") or ()),
        *([table["running"]] if is_running and table.get("running") else ()),
    ]
    return tuple(sum(each[seat] for each in rounds) for seat in range(seats))


def describe_lead(
    before: TableFacts, after: TableFacts, names: Sequence[str], *, is_running: bool = True
) -> str:
    """Say which seat is ahead of all others now, if another one was, or several were level."""
    tables = (before, after)
    leaders = [_find_leader(count_totals(each, len(names), is_running=is_running)) for each in tables]
    if leaders[1] is None or leaders[0] == leaders[1]:
        return ""
    return f"{names[leaders[1]]} takes the lead."


def _find_leader(totals: Sequence[int]) -> int | None:
    return totals.index(max(totals)) if totals.count(max(totals)) == 1 else None


BLOCK_GAP = "   "


def arrange_blocks(text: str, columns: int) -> str:
    """Return the text with its blocks side by side, as many as there is room for.

    Blocks are separated by empty lines. The first block stays alone.

    >>> print(arrange_blocks("head\\n\\nann\\n  R1\\n\\nbob\\n  B2 B3", 20))
    head
    <BLANKLINE>
    ann    bob
      R1     B2 B3
    """
    head, *blocks = text.split("\n\n")
    lined = [block.splitlines() for block in blocks]
    rows = ["\n".join(_join_row(row)) for row in _fill_rows(lined, columns)]
    return "\n\n".join([head, *rows])


def _fill_rows(blocks: Sequence[list[str]], columns: int) -> Iterator[list[list[str]]]:
    row: list[list[str]] = []
    used = 0
    for block in blocks:
        width = max(map(len, block), default=0) + len(BLOCK_GAP)
        if row and used + width - len(BLOCK_GAP) > columns:
            yield row
            row, used = [], 0
        row.append(block)
        used += width
    if row:
        yield row


def _join_row(row: Sequence[list[str]]) -> Iterator[str]:
    widths = [max(map(len, block), default=0) for block in row]
    for lines in zip_longest(*row, fillvalue=""):
        yield BLOCK_GAP.join(map(str.ljust, lines, widths)).rstrip()
