"""The kinds of moves in a race, as the rules of its game tell them apart."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from seatwise_referee.game import RaceGame


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
