"""A seat's time, as its bot is told with each question."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """When the question was put, in milliseconds. Never negative."""

    move_ms: int
    """Free time for this question."""

    bank_ms: int
    """Left in the bank, beyond the free time."""

    charged_ms: int
    """What the last move was charged."""

    latency_ms: int
    """The measured round trip, as it is taken off charges; 0 while it is not known."""

    strikes: int
    """Time-outs so far."""
