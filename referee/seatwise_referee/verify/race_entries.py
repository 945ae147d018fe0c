"""Decides races again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from seatwise_referee.game import IllegalMove, RaceGame, Seat
from seatwise_referee.journal import Agreed, AgreedReason, Called, Charge, RaceCall
from seatwise_referee.time_control import TimeControl
from seatwise_referee.verify.charges import RecordedCharge, check_charge, check_in_time, check_out_of_time
from seatwise_referee.verify.fault import BadRecord, quote_value
from seatwise_referee.verify.open_question import OpenQuestion, check_asked, check_race

NO_BANK_MS = 0
"""A race takes nothing from the bank."""


@dataclass(frozen=True, slots=True)
class RaceQuestion:
    """A race before its next entry."""

    question: OpenQuestion
    state: Any
    limits: TimeControl
    game: RaceGame[Any, Any, Any]


def after_called(entry: Called, race: RaceQuestion) -> Any:
    """Return the game's state after the calls. Raises `BadRecord`."""
    check_race(race.question, entry)
    if not entry.calls:
        raise BadRecord("a `called` without a call", entry.seq)
    _check_each_once(entry)
    for call in entry.calls:
        _check_call(call, entry, race)
    _check_order(entry)
    _check_window(entry, race.limits)
    laid = _with_layouts(entry, race)
    callers = frozenset(call.seat for call in entry.calls)
    for seat in sorted(callers):
        _apply_rule(
            race.game.call_together, (laid, frozenset((seat,))), f"seat {seat} may not call", entry.seq
        )
    return race.game.call_together(laid, callers)


def after_agreed(entry: Agreed, race: RaceQuestion) -> Any:
    """Return the game's state after the round has ended without a call. Raises `BadRecord`."""
    check_race(race.question, entry)
    if entry.reason is AgreedReason.TIMED_OUT:
        _check_time_is_over(entry, race)
        _check_silent(entry, race)
    elif entry.asked or entry.silent:
        raise BadRecord("a round that ended because all agreed names nobody as asked or silent", entry.seq)
    return race.game.end_round(_with_layouts(entry, race))


# The calls


def _check_call(call: RaceCall, entry: Called, race: RaceQuestion) -> None:
    check_asked(race.question, entry, call.seat)
    if call.came_ms > entry.at_ms:
        raise BadRecord(
            f"the call of seat {call.seat} came at {call.came_ms}, after {entry.at_ms} when it was decided",
            entry.seq,
        )
    times = _recorded_charge(call.seat, call.charge, entry.seq, call.came_ms)
    check_charge(times, race.question, race.limits)
    check_in_time(times, race.question, race.limits, NO_BANK_MS)


def _check_each_once(entry: Called) -> None:
    """Check that no seat calls twice. So there are few calls, and the other checks can look at each."""
    if len({call.seat for call in entry.calls}) < len(entry.calls):
        raise BadRecord("a seat calls twice in one `called`", entry.seq)


def _check_order(entry: Called) -> None:
    """Check that the calls are in the order of their charges."""
    for one, other in pairwise(entry.calls):
        if _call_order(other) < _call_order(one):
            raise BadRecord(
                f"the calls are not in order: seat {other.seat}, charged {other.charge.charged_ms} ms, "
                f"stands after seat {one.seat}, charged {one.charge.charged_ms} ms",
                entry.seq,
            )


def _call_order(call: RaceCall) -> tuple[int, int]:
    return call.charge.charged_ms, call.seat


def _check_window(entry: Called, limits: TimeControl) -> None:
    """Check that all calls are within the tie window of the first."""
    if entry.window_ms < limits.tie_window_ms:
        raise BadRecord(
            f"the window of ties is {entry.window_ms} ms; the time control has at least {limits.tie_window_ms}",
            entry.seq,
        )
    first_ms, last = entry.calls[0].charge.charged_ms, entry.calls[-1]
    if last.charge.charged_ms > first_ms + entry.window_ms:
        raise BadRecord(
            f"seat {last.seat} was charged {last.charge.charged_ms} ms: no tie with {first_ms} ms "
            f"in a window of {entry.window_ms} ms",
            entry.seq,
        )


# The end without a call


def _check_time_is_over(entry: Agreed, race: RaceQuestion) -> None:
    """Check that the time of each seat that built had run out."""
    building = sorted(race.question.prompt.seats)
    asked = [each.seat for each in entry.asked]
    if asked != building:
        raise BadRecord(
            f"the time was over for the seats {quote_value(asked)}; those that build are {quote_value(building)}",
            entry.seq,
        )
    for each in entry.asked:
        times = _recorded_charge(each.seat, each.charge, entry.seq, entry.at_ms)
        check_charge(times, race.question, race.limits)
        check_out_of_time(times, race.question, race.limits, NO_BANK_MS)


def _check_silent(entry: Agreed, race: RaceQuestion) -> None:
    """Check that the seats that sent no answer were asked, and laid nothing."""
    if list(entry.silent) != sorted(set(entry.silent)):
        raise BadRecord(
            f"the silent seats {quote_value(list(entry.silent))} are not in rising order", entry.seq
        )
    before = race.game.layouts(race.state)
    for seat in entry.silent:
        if seat not in race.question.prompt.seats:
            raise BadRecord(f"seat {seat} is called silent, but does not build", entry.seq)
        if seat < len(entry.layouts) and entry.layouts[seat] != before[seat]:
            raise BadRecord(f"seat {seat} is called silent, but its layout has changed", entry.seq)


# Common to both


def _with_layouts(entry: Called | Agreed, race: RaceQuestion) -> Any:
    return _apply_rule(
        race.game.with_layouts, (race.state, entry.layouts), "the layouts cannot be", entry.seq
    )


def _apply_rule(rule: Callable[..., Any], given: Sequence[Any], what: str, seq: int) -> Any:
    try:
        return rule(*given)
    except (IllegalMove, ValueError) as error:
        raise BadRecord(f"{what}: {error}", seq) from None


def _recorded_charge(seat: Seat, charge: Charge, seq: int, at_ms: int) -> RecordedCharge:
    return RecordedCharge(seq, seat, at_ms, charge.asked_ms, charge.allowance_ms, charge.charged_ms)
