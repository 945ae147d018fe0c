"""The entry that the referee must write next, if the entries so far leave it no choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from seatwise_referee.ending import Ending
from seatwise_referee.game import Prompt, Seat
from seatwise_referee.journal import (
    Dealt,
    Defaulted,
    DefaultReason,
    Entry,
    Finished,
    Forfeited,
    Moved,
    Rejected,
)
from seatwise_referee.match import FEWEST_SEATS
from seatwise_referee.position import Position
from seatwise_referee.time_control import TimeControl
from seatwise_referee.verify.fault import BadRecord


@dataclass(frozen=True, slots=True)
class RequiredEntry:
    """An entry that must follow at once, with the same time."""

    kind: type[Entry]
    why: str
    """The reason, as half a sentence."""

    seats: tuple[Seat, ...] = ()
    label: str = ""
    """The reason of a `default`, the ending of a `forfeited`."""

    def __str__(self) -> str:
        seats = f" of seat {', '.join(map(str, self.seats))}" if self.seats else ""
        label = f" ({self.label})" if self.label else ""
        return f"`{self.kind.kind}`{seats}{label}"

    def is_met_by(self, entry: Entry) -> bool:
        """Return whether this is the required entry."""
        return type(entry) is self.kind and (_seats_of(entry), _label_of(entry)) == (self.seats, self.label)


def _seats_of(entry: Entry) -> tuple[Seat, ...]:
    if isinstance(entry, Defaulted):
        return tuple(dict.fromkeys(move.seat for move in entry.moves))
    return (entry.seat,) if isinstance(entry, Forfeited) else ()


def _label_of(entry: Entry) -> str:
    if isinstance(entry, Defaulted):
        return entry.reason
    return str(entry.ending) if isinstance(entry, Forfeited) else ""


def required_after(position: Position, last: Entry | None, limits: TimeControl) -> RequiredEntry | None:
    """Return the entry that must follow the last one; `None` if that depends on the bots and the clock."""
    if position.end is not None:
        return None
    if position.state is None:
        return _required_in_setup(position, last)
    if isinstance(last, Moved):  # nearly always; it changes neither strikes nor rejections
        return _required_by_game(position)
    return (
        _forfeit_for_rejections(position, limits)
        or _default_for_late_move(last)
        or _forfeit_for_strikes(position, limits)
        or _required_by_game(position)
    )


def _required_in_setup(position: Position, last: Entry | None) -> RequiredEntry | None:
    waiting = [Seat(seat) for seat, own in enumerate(position.seats) if not own.has_sat and not own.left]
    is_over = isinstance(last, Forfeited) or not waiting
    if not is_over:
        return None
    if waiting:
        return RequiredEntry(Forfeited, "the set-up time is over", (waiting[0],), Ending.NEVER_SAT)
    if sum(own.has_sat for own in position.seats) < FEWEST_SEATS:
        _must_be_void(position, "fewer than two seats were taken")
    return RequiredEntry(Dealt, "all seats were taken or forfeited")


def _forfeit_for_rejections(position: Position, limits: TimeControl) -> RequiredEntry | None:
    for seat, own in enumerate(position.seats):
        if own.rejections >= limits.max_rejections and not own.left:
            why = f"seat {seat} has {own.rejections} of {limits.max_rejections} illegal moves"
            return RequiredEntry(Forfeited, why, (Seat(seat),), Ending.ILLEGAL_MOVES)
    return None


def _default_for_late_move(last: Entry | None) -> RequiredEntry | None:
    if isinstance(last, Rejected) and last.reason == "TOO_LATE":
        return RequiredEntry(
            Defaulted, f"seat {last.seat} answered too late", (last.seat,), DefaultReason.TIMED_OUT
        )
    return None


def _forfeit_for_strikes(position: Position, limits: TimeControl) -> RequiredEntry | None:
    for seat, own in enumerate(position.seats):
        if own.strikes >= limits.max_strikes and not own.left:
            why = f"seat {seat} has {own.strikes} of {limits.max_strikes} strikes"
            return RequiredEntry(Forfeited, why, (Seat(seat),), Ending.TIMED_OUT)
    return None


def _required_by_game(position: Position) -> RequiredEntry | None:
    left = sum(own.left is not None for own in position.seats)
    if left == len(position.seats):
        _must_be_void(position, "no seat is left that plays")
    if position.prompt is None:
        return RequiredEntry(Finished, "the game is over")
    return _default_for_exits(position, position.prompt) if left else None


def _default_for_exits(position: Position, prompt: Prompt) -> RequiredEntry | None:
    exits = [(seat, position.seats[seat].left) for seat in sorted(prompt.seats)]
    for reason in (DefaultReason.RESIGNED, DefaultReason.FORFEITED):
        is_resigned = reason is DefaultReason.RESIGNED
        seats = tuple(
            seat for seat, left in exits if left and is_resigned is (left.ending is Ending.RESIGNED)
        )
        if seats:
            which = ", ".join(map(str, seats))
            why = f"seat {which} has left and is asked prompt {prompt.number}"
            return RequiredEntry(Defaulted, why, seats, reason)
    return None


def _must_be_void(position: Position, why: str) -> NoReturn:
    raise BadRecord(f"{why}: such a match is void and has no record", position.seq)
