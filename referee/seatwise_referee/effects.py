"""The effects that a match asks its shell for. They are data; the shell performs them in their order.

An entry among them is to be written to the journal before any other effect of the same command is performed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from seatwise_referee.ending import RejectReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import Entry


@dataclass(slots=True)
class ShowView:
    """Show the seat its view. The shell asks `Match.update_for` for it when it writes to the seat's stream."""

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
    """Tell the seat that its request does not stand, and why."""

    seat: Seat
    request_id: str
    reason: RejectReason
    message: str


@dataclass(slots=True)
class WakeAt:
    """Call `Match.tick` at this time, in milliseconds since the match was opened; `None` is never."""

    at_ms: int | None


@dataclass(slots=True)
class ShowChange:
    """The view of these seats has changed without an entry: show it to seats that want every change."""

    seats: tuple[Seat, ...]


@dataclass(slots=True)
class EndMatch:
    """The match is over: tell all seats."""


Effect: TypeAlias = Entry | ShowView | AcceptMove | RejectRequest | ShowChange | WakeAt | EndMatch
