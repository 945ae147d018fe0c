"""What the referee plays for others, worked out again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

from seatwise_referee.game import IllegalMove, Json, RaceGame, Seat
from seatwise_referee.journal import Charge, Defaulted, DefaultMove, DefaultReason, canonical_json
from seatwise_referee.position import AnyGame, Position
from seatwise_referee.time_control import TimeControl
from seatwise_referee.verify.clocks import Times, check_charge, check_out_of_time
from seatwise_referee.verify.fault import BadRecord, quoted
from seatwise_referee.verify.question import Question, check_asked, check_no_race

MOST_MOVES = 2
"""Of one seat in one `default`: what it had laid when it left a race, and its default move."""


@dataclass(frozen=True, slots=True)
class Absence:
    """Where seats give no answer."""

    question: Question
    position: Position
    limits: TimeControl
    game: AnyGame


def after_defaulted(entry: Defaulted, absence: Absence, *, is_owed: bool) -> Any:
    """The game's state after the default moves, or `BadRecord`."""
    if not entry.moves:
        raise BadRecord("a `default` that plays for no seat", entry.seq)
    if entry.reason is DefaultReason.TIMED_OUT:
        check_no_race(absence.question, entry)
    state = absence.position.state
    for seat, moves in _in_order(entry):
        check_asked(absence.question, entry, seat)
        if entry.reason is DefaultReason.TIMED_OUT:
            _check_timed_out(entry, seat, moves[-1].charge, absence)
        elif not is_owed:
            raise BadRecord(f"seat {seat} has not left, so there is no `default` ({entry.reason})", entry.seq)
        for each in moves[:-1][: MOST_MOVES - 1]:  # a forged entry may have a million
            state = _laid(state, seat, each.move, entry.seq, absence)
        if len(moves) > MOST_MOVES:
            raise BadRecord(f"the `default` lays for seat {seat} more than once", entry.seq)
        state = _default_played(state, seat, moves[-1].move, entry.seq, absence.game)
    return state


def _in_order(entry: Defaulted) -> Iterator[tuple[Seat, list[DefaultMove]]]:
    """Seats in rising order; of each its moves, the default move last."""
    least = 0
    for seat, moves in groupby(entry.moves, key=lambda each: each.seat):
        if seat < least:
            raise BadRecord(f"seat {seat} is not in order in the `default`", entry.seq)
        least = seat + 1
        yield seat, list(moves)


def _check_timed_out(entry: Defaulted, seat: Seat, charge: Charge | None, absence: Absence) -> None:
    assert charge is not None  # the shape of the entry has been checked
    times = Times(entry.seq, seat, entry.at_ms, charge.asked_ms, charge.allowance_ms, charge.charged_ms)
    check_charge(times, absence.question, absence.limits)
    check_out_of_time(times, absence.question, absence.limits, absence.position.seats[seat].bank_ms)


def _laid(state: Any, seat: Seat, written: Json, seq: int, absence: Absence) -> Any:
    """What the seat laid in a race before it left."""
    left, prompt = absence.position.seats[seat].left, absence.question.prompt
    if not prompt.race:
        raise BadRecord(f"seat {seat} is played for twice in the `default`", seq)
    game = cast("RaceGame[Any, Any, Any]", absence.game)  # only such a game has races
    try:
        move = game.move_from_json(written)
        if not game.is_lay(move):
            raise BadRecord(
                f"the referee played {quoted(written)} for seat {seat}, which only a seat itself can", seq
            )
        if left is None or left.seq < absence.question.opened_seq:
            raise BadRecord(
                f"seat {seat} left before prompt {prompt.number}, and has laid nothing in it", seq
            )
        return game.play(state, seat, move)
    except IllegalMove as illegal:
        raise BadRecord(f"seat {seat} may not {quoted(written)}: {illegal}", seq) from None
    except ValueError as error:
        raise BadRecord(f"seat {seat}: {quoted(written)} is no move: {error}", seq) from None


def _default_played(state: Any, seat: Seat, written: Json, seq: int, game: AnyGame) -> Any:
    default = game.default_move(state, seat)
    right = game.move_to_json(default)
    if canonical_json(written) != canonical_json(right):  # not `!=`, to which `true` is 1
        raise BadRecord(
            f"the referee played {quoted(written)} for seat {seat}; its default move is {quoted(right)}", seq
        )
    return game.play(state, seat, default)
