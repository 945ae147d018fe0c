"""Plays the moves again that the referee played for seats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

from seatwise_referee.game import IllegalMove, Json, RaceGame, Seat
from seatwise_referee.journal import Charge, Defaulted, DefaultMove, DefaultReason, canonical_json
from seatwise_referee.position import AnyGame, Position
from seatwise_referee.time_control import TimeControl
from seatwise_referee.verify.charges import RecordedCharge, check_charge, check_out_of_time
from seatwise_referee.verify.fault import BadRecord, quote_value
from seatwise_referee.verify.open_question import OpenQuestion, check_asked, check_no_race

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
