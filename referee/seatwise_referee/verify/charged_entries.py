"""Checks the entries of a record that answer a question late or in a race: default moves, and what is laid, offered and called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, cast

from seatwise_referee.game import IllegalMove, Json, RaceGame, Seat
from seatwise_referee.journal import (
    Agreed,
    AgreedReason,
    Called,
    Charge,
    Defaulted,
    DefaultMove,
    DefaultReason,
    RaceCall,
    canonical_json,
)
from seatwise_referee.position import AnyGame, Position
from seatwise_referee.time_control import TimeControl
from seatwise_referee.verify.charges import (
    OpenQuestion,
    RecordedCharge,
    check_asked,
    check_charge,
    check_in_time,
    check_no_race,
    check_out_of_time,
    check_race,
)
from seatwise_referee.verify.fault import BadRecord, quote_value

MOST_MOVES = 2
"""The most moves of one seat in one `default`: its last layout when it left a race, and its default move."""


@dataclass(frozen=True, slots=True)
class DefaultsContext:
    """The open question and the match at a `default` entry."""

    question: OpenQuestion
    position: Position
    limits: TimeControl
    game: AnyGame


def after_defaulted(entry: Defaulted, absence: DefaultsContext, *, is_required: bool) -> Any:
    """Return the game's state after the default moves. Raises `BadRecord`."""
    if not entry.moves:
        raise BadRecord("a `default` that plays for no seat", entry.seq)
    if entry.reason is DefaultReason.TIMED_OUT:
        check_no_race(absence.question, entry)
    state = absence.position.state
    for seat, moves in _moves_by_seat(entry):
        check_asked(absence.question, entry, seat)
        if entry.reason is DefaultReason.TIMED_OUT:
            _check_timed_out(entry, seat, moves[-1].charge, absence)
        elif not is_required:
            raise BadRecord(f"seat {seat} has not left, so there is no `default` ({entry.reason})", entry.seq)
        for each in moves[:-1][: MOST_MOVES - 1]:  # a forged entry may have a million
            state = _play_lay(state, seat, each.move, entry.seq, absence)
        if len(moves) > MOST_MOVES:
            raise BadRecord(f"the `default` lays for seat {seat} more than once", entry.seq)
        state = _play_default(state, seat, moves[-1].move, entry.seq, absence.game)
    return state


def _moves_by_seat(entry: Defaulted) -> Iterator[tuple[Seat, list[DefaultMove]]]:
    """Yield the seats in rising order, each with its moves, the default move last."""
    least = 0
    for seat, moves in groupby(entry.moves, key=lambda each: each.seat):
        if seat < least:
            raise BadRecord(f"seat {seat} is not in order in the `default`", entry.seq)
        least = seat + 1
        yield seat, list(moves)


def _check_timed_out(entry: Defaulted, seat: Seat, charge: Charge | None, absence: DefaultsContext) -> None:
    assert charge is not None  # the shape of the entry has been checked
    times = RecordedCharge(
        entry.seq, seat, entry.at_ms, charge.asked_ms, charge.allowance_ms, charge.charged_ms
    )
    check_charge(times, absence.question, absence.limits)
    check_out_of_time(times, absence.question, absence.limits, absence.position.seats[seat].bank_ms)


def _play_lay(state: Any, seat: Seat, written: Json, seq: int, absence: DefaultsContext) -> Any:
    """Return the game's state with the last layout of a seat that left a race. Raises `BadRecord`."""
    left, prompt = absence.position.seats[seat].left, absence.question.prompt
    if not prompt.race:
        raise BadRecord(f"seat {seat} is played for twice in the `default`", seq)
    game = cast("RaceGame[Any, Any, Any]", absence.game)  # only such a game has races
    try:
        move = game.move_from_json(written)
        if not game.is_lay(move):
            raise BadRecord(
                f"the referee played {quote_value(written)} for seat {seat}, which only a seat itself can",
                seq,
            )
        if left is None or left.seq < absence.question.opened_seq:
            raise BadRecord(
                f"seat {seat} left before prompt {prompt.number}, and has laid nothing in it", seq
            )
        return game.play(state, seat, move)
    except IllegalMove as illegal:
        raise BadRecord(f"seat {seat} may not {quote_value(written)}: {illegal}", seq) from None
    except ValueError as error:
        raise BadRecord(f"seat {seat}: {quote_value(written)} is no move: {error}", seq) from None


def _play_default(state: Any, seat: Seat, written: Json, seq: int, game: AnyGame) -> Any:
    default = game.default_move(state, seat)
    right = game.move_to_json(default)
    if canonical_json(written) != canonical_json(right):  # not `!=`, because there `true` equals 1
        raise BadRecord(
            f"the referee played {quote_value(written)} for seat {seat}; its default move is {quote_value(right)}",
            seq,
        )
    return game.play(state, seat, default)


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
