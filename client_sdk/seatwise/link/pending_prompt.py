"""One question to a seat, from its arrival to its answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from seatwise.kits.game_kit import BotMethod, RaceMethod
from seatwise.link.referee_link import SeatKey
from seatwise.offer import TimeLeft
from seatwise.v1.play_service_pb2 import SubmitMove, Update

MOST_TRIES = 3
"""The most answers to one question that are no legal moves. A bot that answers at random finds a legal move in time. The
referee counts the rejections of a whole match, and too many forfeit the seat."""


@dataclass(slots=True)
class PendingPrompt:
    """An open question, and the bot's answer to it."""

    prompt: int
    method: BotMethod
    """The method of the bot that answers it."""

    view: Any
    """The game's view, in the types of its rules."""

    time: TimeLeft

    move: Any = None
    """The move that the bot has answered."""

    submit: SubmitMove | None = None
    """The move as it is sent. It stays until the question is closed, so a repeat has the same bytes."""

    said_in: int = 0
    """The sitting in which the answer was sent, counted from 1; 0 if it was not sent."""

    refused: set[str] = field(default_factory=set)
    """The answers that were no legal moves."""

    asked_s: float = field(default_factory=monotonic)
    """The time at which the question arrived, in seconds of this process's clock."""

    thought_ms: float = 0.0
    """The time from then to the last answer, in milliseconds."""

    tries: int = 0
    is_given_up: bool = False
    """Whether the bot is not asked again. The referee plays the default move when the time is over."""

    @property
    def is_race(self) -> bool:
        """Whether the question is a race, which is answered with many moves."""
        return isinstance(self.method, RaceMethod)

    @property
    def is_to_answer(self) -> bool:
        """Whether the bot is to be asked."""
        return self.submit is None and not self.is_given_up

    @property
    def request_id(self) -> str:
        """The request id of the answer; empty while there is none."""
        return self.submit.request_id if self.submit is not None else ""

    def record_answer(self, request_id: str, move: Any, payload: dict[str, Any]) -> None:
        """Record the bot's answer. From now on each repeat is the same request."""
        self.move = move
        self.thought_ms = 1000 * (monotonic() - self.asked_s)
        self.submit = SubmitMove(request_id=request_id, prompt=self.prompt, **payload)

    def record_rejection(self, answer: str, *, is_last: bool) -> None:
        """Record that the answer was no legal move. After the same answer twice, or too many tries, the bot is not asked again."""
        self.tries += 1
        self.is_given_up = is_last or answer in self.refused or self.tries >= MOST_TRIES
        self.refused.add(answer)
        self.submit = None

    def give_up(self) -> None:
        """Ask the bot no more."""
        self.submit, self.is_given_up = None, True


def pending_prompt_of(update: Update, method: BotMethod, view: Any) -> PendingPrompt:
    """Return the question that an update holds. No time in it is negative, whatever the referee has sent."""
    left = update.time
    given = (left.move_ms, left.bank_ms, left.charged_ms, left.latency_ms, left.strikes)
    return PendingPrompt(update.prompt, method, view, TimeLeft(*[max(0, each) for each in given]))


_log = logging.getLogger("seatwise.times")
_log.propagate = False
_log.setLevel(logging.CRITICAL)


@contextmanager
def write_times_to(file: Path) -> Iterator[None]:
    """Append the time of every answer of this process to the file, as long as the context lasts."""
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    try:
        yield
    finally:
        _log.setLevel(logging.CRITICAL)
        _log.removeHandler(handler)
        handler.close()


def log_answer_time(key: SeatKey, pending: PendingPrompt) -> None:
    """Log the time of the answer that the bot has just given."""
    if _log.isEnabledFor(logging.INFO):
        match, seat = key
        told = {
            "match": match,
            "seat": seat,
            "prompt": pending.prompt,
            "thought_ms": round(pending.thought_ms, 3),
        }
        _log.info(json.dumps(told))
