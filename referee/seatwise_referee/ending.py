"""The ends of a match and of its seats, and the states of a match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """How a match ended for one seat."""

    COMPLETED = "COMPLETED"
    """The seat played to the end."""

    RESIGNED = "RESIGNED"
    """It gave up."""

    TIMED_OUT = "TIMED_OUT"
    """It ran out of time too often, and forfeited."""

    ILLEGAL_MOVES = "ILLEGAL_MOVES"
    """It made too many illegal moves, and forfeited."""

    NEVER_SAT = "NEVER_SAT"
    """Its bot did not sit down in the set-up time."""


class VoidReason(StrEnum):
    """Why a match has no result."""

    ABANDONED = "ABANDONED"
    """All seats have left."""

    TOO_FEW_SAT = "TOO_FEW_SAT"
    """Fewer than two seats were taken in the set-up time; in a league, not all seats."""

    BOT_NOT_TOLD = "BOT_NOT_TOLD"
    """No lobby could tell a bot of its seat in a match of a ladder."""

    NO_ROOM = "NO_ROOM"
    """The server had no connection left for a bot, and could not wait for it any longer."""

    ABORTED = "ABORTED"
    """An operator ended it."""

    POISONED = "POISONED"
    """Too many referee processes died while they played it."""

    JOURNAL_LOST = "JOURNAL_LOST"
    """Redis lost moves that bots have seen."""

    UNPLAYABLE = "UNPLAYABLE"
    """The referee itself failed on it."""

    GAME_FAULT = "GAME_FAULT"
    """The code of its game failed: a game from outside."""


class RejectReason(StrEnum):
    """Why a request does not stand. The wire has more reasons, for requests that never reach a match."""

    ILLEGAL = "ILLEGAL"
    """The rules forbid the move."""

    NOT_ASKED = "NOT_ASKED"
    """The seat is not asked, or its call is held, or it has left the match."""

    STALE = "STALE"
    """The request names a prompt that is not open."""

    TOO_LATE = "TOO_LATE"
    """The time for the prompt had run out."""

    MATCH_OVER = "MATCH_OVER"
    NOT_SEATED = "NOT_SEATED"
    """The seat has not sat down yet."""

    TOO_MANY = "TOO_MANY"
    """The seat sends more than is accepted in a second."""


@dataclass(frozen=True, slots=True)
class SeatExit:
    """A seat has left the match. The referee plays its default moves to the end."""

    ending: Ending
    seq: int
    """The number of the journal entry with which it left. It is 0 for seats that never sat: they left together."""


def result_ranks(ranks: Sequence[int], exits: Sequence[SeatExit | None]) -> tuple[int, ...]:
    """Return the ranks that count for ratings, by seat.

    Seats that stayed keep the order of `ranks`. Seats that left rank behind them, a later exit before an earlier
    one. A rank is 1 + the number of seats that did better, so equal seats share a rank.

    >>> result_ranks((2, 1, 3), [None, SeatExit(Ending.RESIGNED, 40), None])
    (1, 3, 2)
    """
    merits = [(1, -rank) if left is None else (0, left.seq) for rank, left in zip(ranks, exits, strict=True)]
    return tuple(1 + sum(other > own for other in merits) for own in merits)


class MatchState(StrEnum):
    """Where a match stands, as the store keeps it and `seatwise.v1.Match.State` shows it."""

    WAITING = "WAITING"
    """Created with named bots; no referee has it yet."""

    SEATING = "SEATING"
    """A referee has it or soon will, and its bots are to sit down."""

    RUNNING = "RUNNING"
    """The cards are dealt."""

    FINISHED = "FINISHED"
    """Played to its end; it has a result and a record."""

    VOIDED = "VOIDED"
    """Over without a result: it counts for no bot."""
