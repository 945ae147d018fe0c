"""What can go wrong before a bot is at a table, and in what it answers there."""

from __future__ import annotations

from seatwise.errors import SeatwiseError


class UsageError(SeatwiseError, ValueError):
    """Something was asked for that cannot be done; the text says what, where, and what to do instead."""


class BadAnswerError(SeatwiseError):
    """A bot's answer is no legal move; the text says what it answered and what would be right."""
