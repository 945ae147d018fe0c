"""What a match asks its shell to do. Data only; the shell performs them in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from seatwise_referee.game import Seat
from seatwise_referee.journal import Entry


class RejectReason(StrEnum):
    """Why a request does not stand. The wire adds a few that never reach a match."""

    ILLEGAL = "ILLEGAL"
    NOT_ASKED = "NOT_ASKED"
    STALE = "STALE"
    TOO_LATE = "TOO_LATE"
    MATCH_OVER = "MATCH_OVER"
    NOT_SEATED = "NOT_SEATED"
    TOO_MANY = "TOO_MANY"


@dataclass(slots=True)
class WriteEntry:
    """Write this to the journal before anything else of the same command is done."""

    entry: Entry


@dataclass(slots=True)
class ShowView:
    """Show the seat its view. The shell asks `Match.update_for` for it, at the moment of writing."""

    seat: Seat
    prompt: int


@dataclass(slots=True)
class AcceptMove:
    """Tell the seat that its move stands."""

    seat: Seat
    request_id: str
    charged_ms: int


@dataclass(slots=True)
class RejectRequest:
    """Tell the seat that its request does not stand."""

    seat: Seat
    request_id: str
    reason: RejectReason
    message: str


@dataclass(slots=True)
class WakeAt:
    """Call `tick` then, in the match's own milliseconds; `None` is never."""

    at_ms: int | None


@dataclass(slots=True)
class ShowChange:
    """These seats see something else now, without an entry: show it to those who want every change."""

    seats: tuple[Seat, ...]


@dataclass(slots=True)
class EndMatch:
    """The match is over: tell all seats."""


Effect: TypeAlias = WriteEntry | ShowView | AcceptMove | RejectRequest | ShowChange | WakeAt | EndMatch
