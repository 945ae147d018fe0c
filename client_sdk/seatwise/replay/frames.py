"""One position of a match, as terminals and pages draw it. All values are plain JSON, and no drawing knows the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, TypeAlias

from seatwise_referee.game import Json, Seat

ALL_OPEN: Final = "all"
"""The viewpoint that sees every hand and every clock: for matches that are over."""

SPECTATOR: Final = "spectator"
"""The viewpoint that sees only what lies open."""

Viewpoint: TypeAlias = Seat | int | Literal["all", "spectator"]
"""The limit of what a reader may see: all, what lies open, or what the bot of one seat knew."""

TableFacts: TypeAlias = Mapping[str, Any]
"""All that lies open, as the game writes it. Where a game has them, `round` is the number of the round, from 1, `rounds` is
how many the match has, and `points` are the points of each finished round, by seat.
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
