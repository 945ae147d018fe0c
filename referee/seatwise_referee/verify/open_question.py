"""The open prompt, and the check that an entry is about it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from seatwise_referee.game import Prompt, Seat
from seatwise_referee.journal import Agreed, Called, Defaulted, Frozen, Moved, Rejected
from seatwise_referee.verify.fault import BadRecord

PromptEntry: TypeAlias = Moved | Defaulted | Called | Agreed | Rejected
"""An entry that names a prompt."""


class OpenQuestion(NamedTuple):
    """The open prompt, and what the entries say of it."""

    prompt: Prompt
    opened_seq: int
    """The entry that brought it up."""

    opened_ms: int
    """When it was opened at the earliest: with the entry that brought it up, or with the last takeover."""

    base_ms: int
    """The charge from which all seats continue: in a race after a takeover."""

    frozen: list[Frozen]
    """The standstills since it was opened. The list grows: a copy for each would make some records take hours."""


def question_of(question: OpenQuestion | None, entry: PromptEntry) -> OpenQuestion:
    """Return the open question, if the entry names it. Raises `BadRecord`."""
    if question is None:
        raise BadRecord(f"`{entry.kind}` before the deal", entry.seq)
    number = question.prompt.number
    if entry.prompt != number:
        raise BadRecord(f"`{entry.kind}` names prompt {entry.prompt}; open is {number}", entry.seq)
    return question


def check_asked(question: OpenQuestion, entry: PromptEntry, seat: Seat) -> None:
    """Check that this seat is asked."""
    seats = question.prompt.seats
    if seat not in seats:
        asked = ", ".join(map(str, sorted(seats)))
        raise BadRecord(f"`{entry.kind}` of seat {seat}; seat {asked} is asked", entry.seq)


def check_race(question: OpenQuestion, entry: Called | Agreed) -> None:
    """Check that the open prompt is a race."""
    if not question.prompt.race:
        raise BadRecord(f"`{entry.kind}` in prompt {question.prompt.number}, which is no race", entry.seq)


def check_no_race(question: OpenQuestion, entry: Moved | Defaulted | Rejected) -> None:
    """Check that the open prompt is no race."""
    if question.prompt.race:
        reason = "" if isinstance(entry, Moved) else f" for {entry.reason}"
        raise BadRecord(
            f"`{entry.kind}`{reason} in a race; there what counts stands in `called`, `agreed` "
            "and the `default` of who has left",
            entry.seq,
        )
