"""The open question of a match: every charge for an answer to it, computed again, and the entries that answer it late or in a race."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, NamedTuple, TypeAlias, cast

from seatwise_referee.game import IllegalMove, Json, Prompt, RaceGame, Seat
from seatwise_referee.journal import (
    Agreed,
    AgreedReason,
    Called,
    Charge,
    Defaulted,
    DefaultMove,
    DefaultReason,
    Frozen,
    Moved,
    RaceCall,
    Rejected,
    canonical_json,
)
from seatwise_referee.position import AnyGame, Position
from seatwise_referee.time_control import TimeControl
from seatwise_referee.verify.fault import BadRecord, quote_value

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
        raise BadRecord(f"`{entry.kind}` before the deal")
    number = question.prompt.number
    if entry.prompt != number:
        raise BadRecord(f"`{entry.kind}` names prompt {entry.prompt}; open is {number}")
    return question


def check_asked(question: OpenQuestion, entry: PromptEntry, seat: Seat) -> None:
    """Check that this seat is asked."""
    seats = question.prompt.seats
    if seat not in seats:
        asked = ", ".join(map(str, sorted(seats)))
        raise BadRecord(f"`{entry.kind}` of seat {seat}; seat {asked} is asked")


def check_race(question: OpenQuestion, entry: Called | Agreed) -> None:
    """Check that the open prompt is a race."""
    if not question.prompt.race:
        raise BadRecord(f"`{entry.kind}` in prompt {question.prompt.number}, which is no race")


def check_no_race(question: OpenQuestion, entry: Moved | Defaulted | Rejected) -> None:
    """Check that the open prompt is no race."""
    if question.prompt.race:
        reason = "" if isinstance(entry, Moved) else f" for {entry.reason}"
        raise BadRecord(
            f"`{entry.kind}`{reason} in a race; there what counts stands in `called`, `agreed` "
            "and the `default` of who has left"
        )


@dataclass(frozen=True, slots=True)
class RecordedCharge:
    """The charge of one seat, as an entry has it."""

    seat: Seat
    at_ms: int
    """When its answer arrived, or its time was over."""
    asked_ms: int
    allowance_ms: int
    charged_ms: int


AnyCharge: TypeAlias = RecordedCharge | Moved
"""A move has all fields of a charge. To copy them would take as long as the check."""


def check_charge(
    times: AnyCharge, question: OpenQuestion, limits: TimeControl, bank_ms: int, *, is_over: bool = False
) -> None:
    """Check that the charge is `base + max(0, at - asked - allowance - frozen)`, and each part of it possible.

    Also check that a move came in time; or with `is_over`, that the seat's time had run out.
    """
    seat = times.seat
    if times.asked_ms < question.opened_ms:
        raise BadRecord(
            f"seat {seat} was asked at {times.asked_ms}, "
            f"before prompt {question.prompt.number} was opened at {question.opened_ms}"
        )
    if times.asked_ms > times.at_ms:
        raise BadRecord(f"seat {seat} was asked at {times.asked_ms}, after {times.at_ms} when it was over")
    if times.allowance_ms > limits.allowance_cap_ms:
        raise BadRecord(
            f"seat {seat} has an allowance of {times.allowance_ms} ms; the cap is {limits.allowance_cap_ms}"
        )
    frozen_ms = _frozen_ms(question.frozen, times)
    charge = question.base_ms + max(0, times.at_ms - times.asked_ms - times.allowance_ms - frozen_ms)
    if times.charged_ms != charge:
        base = f"base {question.base_ms} + " if question.base_ms else ""
        raise BadRecord(
            f"seat {seat} was charged {times.charged_ms} ms; {base}at {times.at_ms} - asked {times.asked_ms} "
            f"- allowance {times.allowance_ms} - frozen {frozen_ms} is {charge} ms"
        )
    pace = question.prompt.pace
    allowed_ms = limits.allowed_ms(pace, bank_ms)
    if (times.charged_ms > allowed_ms) is not is_over:
        raise BadRecord(
            f"seat {seat} {'had time left' if is_over else 'moved too late'}: charged {times.charged_ms} ms, "
            f"with free {limits.free_ms[pace]} + bank {bank_ms} + grace {limits.grace_ms} = {allowed_ms} ms"
        )


def _frozen_ms(frozen: Collection[Frozen], times: AnyCharge) -> int:
    """Return how much of the standstills fell into the seat's time."""
    if not frozen:  # nearly always
        return 0
    return sum(
        max(0, min(times.at_ms, each.at_ms) - max(times.asked_ms, each.at_ms - each.ms)) for each in frozen
    )


# Default moves

MOST_MOVES = 2
"""The most moves of one seat in one `default`: its last layout when it left a race, and its default move."""


@dataclass(frozen=True, slots=True)
class EntryContext:
    """The open question and the match before an entry that answers it."""

    question: OpenQuestion
    position: Position
    limits: TimeControl
    game: AnyGame

    @property
    def race_game(self) -> RaceGame[Any, Any, Any]:
        """The rules of a race. An entry of a race is refused where the question is none."""
        return cast("RaceGame[Any, Any, Any]", self.game)


def after_defaulted(entry: Defaulted, context: EntryContext, *, is_required: bool) -> Any:
    """Return the game's state after the default moves. Raises `BadRecord`."""
    if not entry.moves:
        raise BadRecord("a `default` that plays for no seat")
    if entry.reason is DefaultReason.TIMED_OUT:
        check_no_race(context.question, entry)
    state = context.position.state
    for seat, moves in _moves_by_seat(entry):
        check_asked(context.question, entry, seat)
        if entry.reason is DefaultReason.TIMED_OUT:
            _check_timed_out(entry, seat, moves[-1].charge, context)
        elif not is_required:
            raise BadRecord(f"seat {seat} has not left, so there is no `default` ({entry.reason})")
        for each in moves[:-1][: MOST_MOVES - 1]:  # a forged entry may have a million
            state = _play_lay(state, seat, each.move, context)
        if len(moves) > MOST_MOVES:
            raise BadRecord(f"the `default` lays for seat {seat} more than once")
        state = _play_default(state, seat, moves[-1].move, context.game)
    return state


def _moves_by_seat(entry: Defaulted) -> Iterator[tuple[Seat, list[DefaultMove]]]:
    """Yield the seats in rising order, each with its moves, the default move last."""
    least = 0
    for seat, moves in groupby(entry.moves, key=lambda each: each.seat):
        if seat < least:
            raise BadRecord(f"seat {seat} is not in order in the `default`")
        least = seat + 1
        yield seat, list(moves)


def _check_timed_out(entry: Defaulted, seat: Seat, charge: Charge | None, context: EntryContext) -> None:
    assert charge is not None  # the shape of the entry has been checked
    times, bank_ms = _recorded_charge(seat, charge, entry.at_ms), context.position.seats[seat].bank_ms
    check_charge(times, context.question, context.limits, bank_ms, is_over=True)


def _play_lay(state: Any, seat: Seat, written: Json, context: EntryContext) -> Any:
    """Return the game's state with the last layout of a seat that left a race. Raises `BadRecord`."""
    left, prompt = context.position.seats[seat].left, context.question.prompt
    if not prompt.race:
        raise BadRecord(f"seat {seat} is played for twice in the `default`")
    game = context.race_game
    try:
        move = game.move_from_json(written)
        if not game.is_lay(move):
            raise BadRecord(
                f"the referee played {quote_value(written)} for seat {seat}, which only a seat itself can"
            )
        if left is None or left.seq < context.question.opened_seq:
            raise BadRecord(f"seat {seat} left before prompt {prompt.number}, and has laid nothing in it")
        return game.play(state, seat, move)
    except IllegalMove as illegal:
        raise BadRecord(f"seat {seat} may not {quote_value(written)}: {illegal}") from None
    except ValueError as error:
        raise BadRecord(f"seat {seat}: {quote_value(written)} is no move: {error}") from None


def _play_default(state: Any, seat: Seat, written: Json, game: AnyGame) -> Any:
    default = game.default_move(state, seat)
    right = game.move_to_json(default)
    if canonical_json(written) != canonical_json(right):  # not `!=`, because there `true` equals 1
        raise BadRecord(
            f"the referee played {quote_value(written)} for seat {seat}; its default move is {quote_value(right)}"
        )
    return game.play(state, seat, default)


# Races

NO_BANK_MS = 0
"""A race takes nothing from the bank."""


def after_called(entry: Called, race: EntryContext) -> Any:
    """Return the game's state after the calls. Raises `BadRecord`."""
    check_race(race.question, entry)
    if not entry.calls:
        raise BadRecord("a `called` without a call")
    _check_each_once(entry)
    for call in entry.calls:
        _check_call(call, entry, race)
    _check_order(entry)
    _check_window(entry, race.limits)
    laid = _with_layouts(entry, race)
    callers = frozenset(call.seat for call in entry.calls)
    for seat in sorted(callers):
        _apply_rule(race.race_game.call_together, (laid, frozenset((seat,))), f"seat {seat} may not call")
    return race.race_game.call_together(laid, callers)


def after_agreed(entry: Agreed, race: EntryContext) -> Any:
    """Return the game's state after the round has ended without a call. Raises `BadRecord`."""
    check_race(race.question, entry)
    if entry.reason is AgreedReason.TIMED_OUT:
        _check_time_is_over(entry, race)
        _check_silent(entry, race)
    elif entry.asked or entry.silent:
        raise BadRecord("a round that ended because all agreed names nobody as asked or silent")
    return race.race_game.end_round(_with_layouts(entry, race))


# The calls


def _check_call(call: RaceCall, entry: Called, race: EntryContext) -> None:
    check_asked(race.question, entry, call.seat)
    if call.came_ms > entry.at_ms:
        raise BadRecord(
            f"the call of seat {call.seat} came at {call.came_ms}, after {entry.at_ms} when it was decided"
        )
    times = _recorded_charge(call.seat, call.charge, call.came_ms)
    check_charge(times, race.question, race.limits, NO_BANK_MS)


def _check_each_once(entry: Called) -> None:
    """Check that no seat calls twice. So there are few calls, and the other checks can look at each."""
    if len({call.seat for call in entry.calls}) < len(entry.calls):
        raise BadRecord("a seat calls twice in one `called`")


def _check_order(entry: Called) -> None:
    for one, other in pairwise(entry.calls):
        if _call_order(other) < _call_order(one):
            raise BadRecord(
                f"the calls are not in order: seat {other.seat}, charged {other.charge.charged_ms} ms, "
                f"stands after seat {one.seat}, charged {one.charge.charged_ms} ms"
            )


def _call_order(call: RaceCall) -> tuple[int, int]:
    return call.charge.charged_ms, call.seat


def _check_window(entry: Called, limits: TimeControl) -> None:
    """Check that all calls are within the tie window of the first."""
    if entry.window_ms < limits.tie_window_ms:
        raise BadRecord(
            f"the window of ties is {entry.window_ms} ms; the time control has at least {limits.tie_window_ms}"
        )
    first_ms, last = entry.calls[0].charge.charged_ms, entry.calls[-1]
    if last.charge.charged_ms > first_ms + entry.window_ms:
        raise BadRecord(
            f"seat {last.seat} was charged {last.charge.charged_ms} ms: no tie with {first_ms} ms "
            f"in a window of {entry.window_ms} ms"
        )


# The end without a call


def _check_time_is_over(entry: Agreed, race: EntryContext) -> None:
    """Check that the time of each seat that built had run out."""
    building = sorted(race.question.prompt.seats)
    asked = [each.seat for each in entry.asked]
    if asked != building:
        raise BadRecord(
            f"the time was over for the seats {quote_value(asked)}; those that build are {quote_value(building)}"
        )
    for each in entry.asked:
        times = _recorded_charge(each.seat, each.charge, entry.at_ms)
        check_charge(times, race.question, race.limits, NO_BANK_MS, is_over=True)


def _check_silent(entry: Agreed, race: EntryContext) -> None:
    """Check that the seats that sent no answer were asked, and laid nothing."""
    if list(entry.silent) != sorted(set(entry.silent)):
        raise BadRecord(f"the silent seats {quote_value(list(entry.silent))} are not in rising order")
    before = race.race_game.layouts(race.position.state)
    for seat in entry.silent:
        if seat not in race.question.prompt.seats:
            raise BadRecord(f"seat {seat} is called silent, but does not build")
        if seat < len(entry.layouts) and entry.layouts[seat] != before[seat]:
            raise BadRecord(f"seat {seat} is called silent, but its layout has changed")


# Common to both


def _with_layouts(entry: Called | Agreed, race: EntryContext) -> Any:
    return _apply_rule(
        race.race_game.with_layouts, (race.position.state, entry.layouts), "the layouts cannot be"
    )


def _apply_rule(rule: Callable[..., Any], given: Sequence[Any], what: str) -> Any:
    try:
        return rule(*given)
    except (IllegalMove, ValueError) as error:
        raise BadRecord(f"{what}: {error}") from None


def _recorded_charge(seat: Seat, charge: Charge, at_ms: int) -> RecordedCharge:
    return RecordedCharge(seat, at_ms, charge.asked_ms, charge.allowance_ms, charge.charged_ms)
