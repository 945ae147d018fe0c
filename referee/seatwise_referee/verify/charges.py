"""The open question of a match, and every charge for an answer to it, computed again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from seatwise_referee.game import Prompt, Seat
from seatwise_referee.journal import Agreed, Called, Defaulted, Frozen, Moved, Rejected
from seatwise_referee.time_control import TimeControl
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


@dataclass(frozen=True, slots=True)
class RecordedCharge:
    """The charge of one seat, as an entry has it."""

    seq: int
    seat: Seat
    at_ms: int
    """When its answer arrived, or its time was over."""
    asked_ms: int
    allowance_ms: int
    charged_ms: int


AnyCharge: TypeAlias = RecordedCharge | Moved
"""A move has all fields of a charge. To copy them would take as long as the check."""


def check_charge(times: AnyCharge, question: OpenQuestion, limits: TimeControl) -> None:
    """Check that the charge is `base + max(0, at - asked - allowance - frozen)`, and each part of it possible."""
    seat, seq = times.seat, times.seq
    if times.asked_ms < question.opened_ms:
        raise BadRecord(
            f"seat {seat} was asked at {times.asked_ms}, "
            f"before prompt {question.prompt.number} was opened at {question.opened_ms}",
            seq,
        )
    if times.asked_ms > times.at_ms:
        raise BadRecord(
            f"seat {seat} was asked at {times.asked_ms}, after {times.at_ms} when it was over", seq
        )
    if times.allowance_ms > limits.allowance_cap_ms:
        raise BadRecord(
            f"seat {seat} has an allowance of {times.allowance_ms} ms; the cap is {limits.allowance_cap_ms}",
            seq,
        )
    frozen_ms = _frozen_ms(question.frozen, times)
    charge = question.base_ms + max(0, times.at_ms - times.asked_ms - times.allowance_ms - frozen_ms)
    if times.charged_ms != charge:
        base = f"base {question.base_ms} + " if question.base_ms else ""
        raise BadRecord(
            f"seat {seat} was charged {times.charged_ms} ms; {base}at {times.at_ms} - asked {times.asked_ms} "
            f"- allowance {times.allowance_ms} - frozen {frozen_ms} is {charge} ms",
            seq,
        )


def _frozen_ms(frozen: Collection[Frozen], times: AnyCharge) -> int:
    """Return how much of the standstills fell into the seat's time."""
    if not frozen:  # nearly always
        return 0
    return sum(
        max(0, min(times.at_ms, each.at_ms) - max(times.asked_ms, each.at_ms - each.ms)) for each in frozen
    )


def check_in_time(times: AnyCharge, question: OpenQuestion, limits: TimeControl, bank_ms: int) -> None:
    """Check that a move came in time."""
    pace = question.prompt.pace
    if times.charged_ms > limits.allowed_ms(pace, bank_ms):
        raise BadRecord(
            f"seat {times.seat} moved too late: charged {times.charged_ms} ms, "
            f"with {_describe_limit(limits, pace, bank_ms)}",
            times.seq,
        )


def check_out_of_time(
    times: RecordedCharge, question: OpenQuestion, limits: TimeControl, bank_ms: int
) -> None:
    """Check that a seat's time had run out when the referee played for it."""
    pace = question.prompt.pace
    if times.charged_ms <= limits.allowed_ms(pace, bank_ms):
        raise BadRecord(
            f"seat {times.seat} had time left: charged {times.charged_ms} ms, "
            f"with {_describe_limit(limits, pace, bank_ms)}",
            times.seq,
        )


def _describe_limit(limits: TimeControl, pace: str, bank_ms: int) -> str:
    total = limits.allowed_ms(pace, bank_ms)
    return f"free {limits.free_ms[pace]} + bank {bank_ms} + grace {limits.grace_ms} = {total} ms"
