"""The answers that a bot for Ubongo may yield, and how they are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from seatwise.bot_errors import BadAnswerError
from seatwise_referee.game import IllegalMove
from seatwise_referee.games.ubongo import (
    GOAL,
    Call,
    Card,
    Lay,
    Layout,
    OfferEnd,
    Placement,
    View,
)
from seatwise_referee.games.ubongo.legality import check_layout

BUILD: Final = "build"
"""The pace of a race."""


@dataclass(frozen=True, slots=True)
class Thought:
    """Declares how long the bot has thought. A local table, where time is virtual, charges it. A server ignores it.

    Example:
        >>> Thought(3)
        Thought(ms=3)
    """

    ms: int
    """Thinking time in milliseconds, at least 0. The next answer is charged at least 1 ms."""


Step: TypeAlias = Lay | OfferEnd | Call | Thought


class Steps:
    """Reads the answers of one bot in one round. `BadAnswerError` says what is wrong before the referee could."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._laid: Layout = view.layout
        self._is_offering = view.seat in view.offers

    def read(self, answer: object) -> Step:
        """Return the move, or the thought."""
        match answer:
            case Thought(int(ms)) if ms >= 0:
                return Thought(ms)
            case OfferEnd(bool(on)):
                self._is_offering = on
                return OfferEnd(on)
            case Call():
                return self._call(answer)
            case Thought() | OfferEnd():
                raise BadAnswerError(f"{answer!r}: a thought has milliseconds, and an offer is True or False")
        return self._lay(answer)

    def _call(self, call: Call) -> Call:
        if self._is_offering:
            raise BadAnswerError("Call() while it offers the end: yield OfferEnd(False) first")
        if len(self._laid) < GOAL:
            raise BadAnswerError(f"Call() with {len(self._laid)} cards laid: it takes {GOAL}")
        return call

    def _lay(self, answer: object) -> Lay:
        layout = answer.layout if isinstance(answer, Lay) else _layout(answer)
        try:
            check_layout(self._view.hand, layout)
        except IllegalMove as illegal:
            raise BadAnswerError(f"build(view) yielded a layout that cannot lie: {illegal}") from None
        self._laid = layout
        return Lay(layout)


def _layout(answer: object) -> Layout:
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise BadAnswerError(
            f"{_shown(answer)}: build(view) yields layouts, OfferEnd(on), Thought(ms) and at last Call()"
        )
    return tuple(map(_placement, answer))


def _placement(answer: Any) -> Placement:
    if type(answer) is Placement:
        return answer
    try:
        card, x, y, turn = answer
        return Placement(Card.parse(card) if isinstance(card, str) else Card(card), x, y, turn)
    except (TypeError, ValueError) as error:
        raise BadAnswerError(
            f"{_shown(answer)} is no placement: write (card, x, y, turn), as in ('1-01', 0, 0, 1) ({error})"
        ) from None


def _shown(answer: object) -> str:
    text = repr(answer)
    return text if len(text) <= 60 else f"{text[:57]}..."
