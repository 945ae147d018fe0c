"""The stages in the life of a match."""

from __future__ import annotations

from enum import StrEnum


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
