"""A seat's time, as its bot sees it with each question."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """A seat's time at the moment of the question, in milliseconds. No field is negative."""

    move_ms: int
    """Free time for this question, in milliseconds."""

    bank_ms: int
    """Time left in the bank, in addition to the free time, in milliseconds."""

    charged_ms: int
    """Time charged for the last move, in milliseconds."""

    latency_ms: int
    """The measured round trip and 2 ms for the handling of messages, as they are subtracted from charges, in milliseconds; 0 while the
    round trip is not known."""

    strikes: int
    """Number of time-outs so far."""
