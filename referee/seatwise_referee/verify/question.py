"""The open prompt, and whether an entry is about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from seatwise_referee.game import Prompt, Seat
from seatwise_referee.journal import Agreed, Called, Defaulted, Frozen, Moved, Rejected
from seatwise_referee.verify.fault import BadRecord

Answer: TypeAlias = Moved | Defaulted | Called | Agreed | Rejected
"""An entry that names a prompt."""


@dataclass(frozen=True, slots=True)
class Question:
    """The open prompt, and what befell it."""

    prompt: Prompt
    opened_seq: int
    """The entry that brought it up."""

    put_ms: int
    """When it was put at the earliest: with the entry that brought it up, or with the last takeover."""

    base_ms: int = 0
    """What everybody has been charged already: in a race after a takeover."""

    frozen: list[Frozen] = field(default_factory=list)
    """Since it was put. It grows: a copy for each would make a record of nothing else take hours."""


def about(question: Question | None, entry: Answer) -> Question:
    """The open question, if the entry names it."""
    if question is None:
        raise BadRecord(f"`{entry.kind}` before the deal", entry.seq)
    number = question.prompt.number
    if entry.prompt != number:
        raise BadRecord(f"`{entry.kind}` names prompt {entry.prompt}; open is {number}", entry.seq)
    return question


def check_asked(question: Question, entry: Answer, seat: Seat) -> None:
    """That the question was put to this seat."""
    seats = question.prompt.seats
    if seat not in seats:
        asked = ", ".join(map(str, sorted(seats)))
        raise BadRecord(f"`{entry.kind}` of seat {seat}; seat {asked} is asked", entry.seq)


def check_race(question: Question, entry: Called | Agreed) -> None:
    """That all build at once."""
    if not question.prompt.race:
        raise BadRecord(f"`{entry.kind}` in prompt {question.prompt.number}, which is no race", entry.seq)


def check_no_race(question: Question, entry: Moved | Defaulted | Rejected) -> None:
    """That this is an entry for one who is asked alone."""
    if question.prompt.race:
        reason = "" if isinstance(entry, Moved) else f" for {entry.reason}"
        raise BadRecord(
            f"`{entry.kind}`{reason} in a race; there what counts stands in `called`, `agreed` "
            "and the `default` of who has left",
            entry.seq,
        )
