"""Thinking time that a bot declares while it builds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thought:
    """Declares how long the bot has thought. A local table, where time is virtual, charges it. A server ignores it.

    Example:
        >>> Thought(3)
        Thought(ms=3)
    """

    ms: int
    """Thinking time in milliseconds, at least 0. The next answer is charged at least 1 ms."""
