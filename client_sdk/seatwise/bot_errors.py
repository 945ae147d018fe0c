"""Errors before a bot sits down, and in its answers."""

from __future__ import annotations

from seatwise.errors import SeatwiseError


class UsageError(SeatwiseError, ValueError):
    """The caller asked for something that cannot be done. The message says what, where, and what to do instead."""


class BadAnswerError(SeatwiseError):
    """A bot's answer is no legal move. The message has the answer, and says what would be right."""


class ResignMatch(SeatwiseError):
    """Raise it in a method that answers a question, to resign the match: the referee plays the default moves to the end."""
