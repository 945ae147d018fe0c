"""The steps of a bot in a race: thoughts that it declares, kinds of moves, and the rate at which it may lay."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from seatwise_referee.game import RaceGame
from seatwise_referee.race_prompt import MOST_LAYS_A_SECOND


@dataclass(frozen=True, slots=True)
class Thought:
    """Declares how long the bot has thought. A local table, where time is virtual, charges it. A server ignores it.

    Example:
        >>> Thought(3)
        Thought(ms=3)
    """

    ms: int
    """Thinking time in milliseconds, at least 0. The next answer is charged at least 1 ms."""


class StepKind(IntEnum):
    """The kind of a move in a race. Of waiting moves, the lower kind is sent first."""

    LAYOUT = 0
    """It lays something. Only the newest layout counts."""

    OFFER = 1
    """It offers to end the round, or withdraws that. It follows the layout, because an offer may end the round."""

    CALL = 2
    """It calls. It is sent at once, and it is the last move."""


def kind_of_step(rules: RaceGame[Any, Any, Any], move: Any) -> StepKind:
    """Return what this move does in a race of this game."""
    if rules.is_call(move):
        return StepKind.CALL
    return StepKind.OFFER if rules.is_offer(move) else StepKind.LAYOUT


BURST: Final = 2 * MOST_LAYS_A_SECOND // 5
"""Number of layouts that may follow each other at once, because a bot lays quickly when a round begins."""

STEP_MS: Final = 2500 / MOST_LAYS_A_SECOND
"""After that, one layout in each interval. Both limits leave room in a second for a call, and for a
network that delays messages in bunches.
"""


class SendRate:
    """The rate of one seat. The caller passes the time, in milliseconds."""

    def __init__(self) -> None:
        self._due_ms = 0.0
        """The time at which everything sent so far would have been sent at the steady rate."""

    def ready_ms(self, now: float) -> float:
        """Return when the next layout may be sent; not before now."""
        return max(now, self._due_ms - BURST * STEP_MS)

    def count_layout(self, now: float) -> None:
        """Count a layout that is sent now."""
        self._due_ms = max(now, self._due_ms) + STEP_MS

    def pause_for(self, now: float, wait_ms: float) -> None:
        """Send no layout for so long."""
        self._due_ms = max(self._due_ms, now + wait_ms + BURST * STEP_MS)
