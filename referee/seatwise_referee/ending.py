"""How a match or a seat came to its end, kept apart from what the rules say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """How one seat came to the end of a match."""

    COMPLETED = "COMPLETED"
    RESIGNED = "RESIGNED"
    TIMED_OUT = "TIMED_OUT"
    ILLEGAL_MOVES = "ILLEGAL_MOVES"
    NEVER_SAT = "NEVER_SAT"


class VoidReason(StrEnum):
    """Why a match counts for nobody."""

    ABANDONED = "ABANDONED"
    """No seat was left that still played."""

    TOO_FEW_SAT = "TOO_FEW_SAT"
    """Fewer than two seats were taken in the set-up time."""

    ABORTED = "ABORTED"
    """An operator ended it."""

    POISONED = "POISONED"
    """Three referees died with it."""

    JOURNAL_LOST = "JOURNAL_LOST"
    """Redis lost moves that bots have seen."""

    UNPLAYABLE = "UNPLAYABLE"
    """The referee itself failed on it: our fault."""


@dataclass(frozen=True, slots=True)
class SeatExit:
    """A seat has left; the referee plays its default moves to the end."""

    ending: Ending
    seq: int
    """The journal entry with which it left; 0 for those who never sat: they left together."""


def result_ranks(ranks: Sequence[int], exits: Sequence[SeatExit | None]) -> tuple[int, ...]:
    """What counts for ratings: as the rules rank them, but seats that left behind all others, a later exit
    before an earlier one.

    1 + the number of seats that did better; equals share a rank.
    """
    merits = [(1, -rank) if left is None else (0, left.seq) for rank, left in zip(ranks, exits, strict=True)]
    return tuple(1 + sum(other > own for other in merits) for own in merits)
