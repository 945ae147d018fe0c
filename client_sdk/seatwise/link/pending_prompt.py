"""One question to a seat, from its arrival to its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from uuid import uuid4

from seatwise.kits.game_kit import BotMethod, RaceMethod
from seatwise.time_left import TimeLeft
from seatwise.v1.play_service_pb2 import SubmitMove, Update

MOST_TRIES = 3
"""So many answers to one question that are no legal moves, and no more: a bot that draws lots finds a legal
one in time, and the rejections of a whole match are counted, for too many of them forfeit the seat."""


@dataclass(slots=True)
class PendingPrompt:
    """An open question."""

    prompt: int
    method: BotMethod
    """The method of the bot that answers it."""

    view: Any
    """In the rules' own terms."""

    time: TimeLeft

    move: Any = None
    """What the bot has answered."""

    submit: SubmitMove | None = None
    """The same as it is sent. It stays until the question is closed, so that a repeat is the same."""

    said_in: int = 0
    """In which sitting it was sent, counted from 1."""

    refused: set[str] = field(default_factory=set)
    """Answers that were no legal moves."""

    asked_s: float = field(default_factory=monotonic)
    """When the question came, by this process's own clock."""

    thought_ms: float = 0.0
    """From then to the last answer."""

    tries: int = 0
    is_given_up: bool = False
    """The bot has failed it: the referee plays the default when the time is over."""

    @property
    def is_race(self) -> bool:
        """Whether it is answered by building, in many steps."""
        return isinstance(self.method, RaceMethod)

    @property
    def is_to_answer(self) -> bool:
        """Whether the bot is to be asked."""
        return self.submit is None and not self.is_given_up

    @property
    def request_id(self) -> str:
        """That of the answer; empty while there is none."""
        return self.submit.request_id if self.submit is not None else ""

    def record_answer(self, move: Any, payload: dict[str, Any]) -> None:
        """The bot has answered; from now on it is always the same request."""
        self.move = move
        self.thought_ms = 1000 * (monotonic() - self.asked_s)
        self.submit = SubmitMove(request_id=str(uuid4()), prompt=self.prompt, **payload)

    def record_rejection(self, answer: str, *, is_last: bool) -> None:
        """This answer was no legal move. The same one again, or too many, and the question is given up."""
        self.tries += 1
        self.is_given_up = is_last or answer in self.refused or self.tries >= MOST_TRIES
        self.refused.add(answer)
        self.submit = None

    def give_up(self) -> None:
        """The bot is not asked again."""
        self.submit, self.is_given_up = None, True


def pending_prompt_of(update: Update, method: BotMethod, view: Any) -> PendingPrompt:
    """The question that the update puts."""
    left = update.time
    time = TimeLeft(left.move_ms, left.bank_ms, left.charged_ms, left.latency_ms, left.strikes)
    return PendingPrompt(update.prompt, method, view, time)
