"""The position of a match: its journal, applied entry by entry.

`position_after(position, entry)` is the only way forward, for a live match and for a replay alike. So the two
cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from seatwise_referee.each_move import bank_after
from seatwise_referee.ending import Ending, RejectReason, SeatExit
from seatwise_referee.game import Game, Prompt, RaceGame, Seat
from seatwise_referee.journal import (
    Agreed,
    Called,
    Dealt,
    Defaulted,
    DrawnMove,
    Entry,
    Finished,
    Forfeited,
    Frozen,
    Moved,
    Rejected,
    Resigned,
    Sat,
    TakenOver,
    Voided,
)
from seatwise_referee.setup import Setup

# These are named tuples, because every move copies a position and a seat. To copy a named tuple with a change
# takes a third of the time that a frozen dataclass takes (measured).

_new_tuple: Final = tuple.__new__
"""The function behind a named tuple's constructor. Every move comes here three times, and this takes half the time."""


class RequestReply(NamedTuple):
    """The reply to a seat's last request. A repeat of the request gets the same reply."""

    prompt: int
    request_id: str
    reason: str
    """A `RejectReason`; empty if the move was accepted."""
    message: str
    charged_ms: int


class SeatState(NamedTuple):
    """The position of one seat."""

    bank_ms: int
    has_sat: bool = False
    nonce: bytes | None = None
    strikes: int = 0
    """How often its time ran out."""
    rejections: int = 0
    """How many illegal moves it made."""
    charged_ms: int = 0
    """The charge of its last move."""
    left: SeatExit | None = None
    """How it left the match, if it has."""
    reply: RequestReply | None = None
    rejected_seq: int = 0
    """The last entry that this seat alone may know of: a rejection of its own."""
    late_prompt: int | None = None
    """The last prompt on which its time ran out. An answer to it that still comes is late instead of stale."""

    @property
    def ending(self) -> Ending:
        """How the match ends for this seat: as it left, or completed."""
        return self.left.ending if self.left else Ending.COMPLETED


class Position(NamedTuple):
    """A match between two journal entries."""

    seats: tuple[SeatState, ...]
    seq: int = 0
    at_ms: int = 0
    epoch: int = 1
    state: Any = None
    """The game's state; `None` before the deal."""
    prompt: Prompt | None = None
    end: Finished | Voided | None = None
    setup_began_ms: int = 0
    """When the set-up time began: when the match was opened, or taken over last."""
    race_ms: int = 0
    """The first charge in the last `called` entry of the open race. After a takeover all charges continue from there."""
    public_seq: int = 0
    """The last entry that every seat may know of."""

    @property
    def nonces(self) -> tuple[bytes | None, ...]:
        """The nonces, by seat."""
        return tuple(seat.nonce for seat in self.seats)

    def seen_seq(self, seat: Seat) -> int:
        """Return the last entry that this seat may know of: a public one, or a rejection of its own."""
        return max(self.public_seq, self.seats[seat].rejected_seq)

    def with_seat(self, seat: Seat, state: SeatState) -> tuple[SeatState, ...]:
        """Return all seats with this one changed."""
        seats = list(self.seats)
        seats[seat] = state
        return tuple(seats)


AnyRaceGame: TypeAlias = "RaceGame[Any, Any, Any]"
"""The game of `called` and `agreed` entries: only such a game has races."""
AnyGame: TypeAlias = "Game[Any, Any, Any] | RaceGame[Any, Any, Any]"


def first_position(setup: Setup) -> Position:
    """Return the position before the first entry."""
    return Position(seats=(SeatState(bank_ms=setup.time_control.bank_ms),) * len(setup.bots))


def position_after(
    position: Position, entry: Entry, setup: Setup, game: AnyGame, state: Any = None
) -> Position:
    """Return the position after one more entry.

    `state` is the game's state after the entry, where the caller knows it already; else it is computed here.
    Raises `IllegalMove` if the entry holds a move that the rules forbid.
    """
    step = _ENTRY_EFFECTS[type(entry)]
    return step(position, entry, setup, game, state)


def _after_public(position: Position, entry: Entry, **changes: Any) -> Position:
    """Return the position with these changes, after an entry that all seats may know of."""
    return position._replace(seq=entry.seq, public_seq=entry.seq, at_ms=entry.at_ms, **changes)


def _after_sat(position: Position, entry: Sat, *_: Any) -> Position:
    nonce = None if entry.nonce is None else bytes.fromhex(entry.nonce)
    taken = position.seats[entry.seat]._replace(has_sat=True, nonce=nonce)
    return _after_public(position, entry, seats=position.with_seat(entry.seat, taken))


def _after_dealt(position: Position, entry: Dealt, setup: Setup, game: AnyGame, _: Any) -> Position:
    seed = setup.deals_from(position.nonces)
    state = game.deal(len(setup.bots), seed, setup.options)
    return _after_public(position, entry, state=state, prompt=game.prompt(state))


def _after_moved(position: Position, entry: Moved, setup: Setup, game: AnyGame, state: Any) -> Position:
    """Return the position after a move. Every move comes here, and `_replace` takes three times as long."""
    before, _, _, epoch, game_before, prompt, end, setup_began_ms, race_ms, _ = position
    seat, seq, charged_ms, limits = entry.seat, entry.seq, entry.charged_ms, setup.time_control
    if state is None:
        state = game.play(game_before, seat, game.move_from_json(entry.move))
    assert prompt is not None
    bank_ms, has_sat, nonce, strikes, rejections, _, left, _, rejected_seq, late_prompt = before[seat]
    bank_ms = bank_after(limits.free_ms[prompt.pace], limits.increment_ms, bank_ms, charged_ms)
    reply = _new_tuple(RequestReply, (entry.prompt, entry.request_id, "", "", charged_ms))
    moved = (bank_ms, has_sat, nonce, strikes, rejections, charged_ms, left, reply, rejected_seq, late_prompt)
    seats = list(before)
    seats[seat] = _new_tuple(SeatState, moved)
    asked = game.prompt(state)
    after = (tuple(seats), seq, entry.at_ms, epoch, state, asked, end, setup_began_ms, race_ms, seq)
    return _new_tuple(Position, after)


def _after_defaulted(position: Position, entry: Defaulted, _: Setup, game: AnyGame, __: Any) -> Position:
    assert position.prompt is not None
    seats, state = position.seats, position.state
    for seat, move, charge in ((each.seat, each.move, each.charge) for each in entry.moves):
        state = game.play(state, seat, game.move_from_json(move))
        if charge is not None:
            late, number = seats[seat], position.prompt.number
            strikes = late.strikes + position.prompt.fault
            late = late._replace(bank_ms=0, strikes=strikes, charged_ms=charge.charged_ms, late_prompt=number)
            seats = (*seats[:seat], late, *seats[seat + 1 :])
    return _in_race(_after_public(position, entry, seats=seats), state, game)


def _after_called(position: Position, entry: Called, _: Setup, game: AnyRaceGame, state: Any) -> Position:
    callers = frozenset(call.seat for call in entry.calls)
    if state is None:
        state = game.call_together(game.with_layouts(position.state, entry.layouts), callers)
    seats = position.seats
    for call, request_id in zip(entry.calls, entry.request_ids or ("",) * len(entry.calls), strict=True):
        charged_ms = call.charge.charged_ms
        answer = RequestReply(entry.prompt, request_id, "", "", charged_ms)
        caller = seats[call.seat]._replace(charged_ms=charged_ms, reply=answer)
        seats = (*seats[: call.seat], caller, *seats[call.seat + 1 :])
    first_ms = entry.calls[0].charge.charged_ms
    return _in_race(_after_public(position, entry, seats=seats, race_ms=first_ms), state, game)


def _after_agreed(position: Position, entry: Agreed, _: Setup, game: AnyRaceGame, state: Any) -> Position:
    if state is None:
        state = game.end_round(game.with_layouts(position.state, entry.layouts))
    late = {each.seat for each in entry.asked}
    seats = tuple(
        own._replace(
            strikes=own.strikes + (seat in entry.silent),
            late_prompt=entry.prompt if seat in late else own.late_prompt,
        )
        for seat, own in enumerate(position.seats)
    )
    return _in_race(_after_public(position, entry, seats=seats), state, game)


def _in_race(position: Position, state: Any, game: AnyGame) -> Position:
    """Return the position with the game's new state. With a new round charges begin at zero."""
    prompt, before = game.prompt(state), position.prompt
    is_same = prompt is not None and before is not None and prompt.number == before.number
    return position._replace(state=state, prompt=prompt, race_ms=position.race_ms if is_same else 0)


def _after_rejected(position: Position, entry: Rejected, *_: Any) -> Position:
    seat = position.seats[entry.seat]
    rejected = seat._replace(
        rejections=seat.rejections + (entry.reason is RejectReason.ILLEGAL),
        reply=RequestReply(entry.prompt, entry.request_id, entry.reason, entry.message, 0),
        rejected_seq=entry.seq,
    )
    seats = position.with_seat(entry.seat, rejected)
    return position._replace(seq=entry.seq, at_ms=entry.at_ms, seats=seats)


def _after_resigned(position: Position, entry: Resigned, *_: Any) -> Position:
    gone = position.seats[entry.seat]._replace(left=SeatExit(Ending.RESIGNED, entry.seq))
    return _after_public(position, entry, seats=position.with_seat(entry.seat, gone))


def _after_forfeited(position: Position, entry: Forfeited, *_: Any) -> Position:
    seq = 0 if entry.ending is Ending.NEVER_SAT else entry.seq
    gone = position.seats[entry.seat]._replace(left=SeatExit(entry.ending, seq))
    return _after_public(position, entry, seats=position.with_seat(entry.seat, gone))


def _after_taken_over(position: Position, entry: TakenOver, *_: Any) -> Position:
    return _after_public(position, entry, epoch=entry.epoch, setup_began_ms=entry.at_ms)


def _after_frozen(position: Position, entry: Frozen, *_: Any) -> Position:
    return _after_public(position, entry)


def _after_end(position: Position, entry: Finished | Voided, *_: Any) -> Position:
    return _after_public(position, entry, prompt=None, end=entry)


_ENTRY_EFFECTS: dict[type[Entry], Callable[..., Position]] = {
    Sat: _after_sat,
    Dealt: _after_dealt,
    Moved: _after_moved,
    DrawnMove: _after_moved,
    Defaulted: _after_defaulted,
    Called: _after_called,
    Agreed: _after_agreed,
    Rejected: _after_rejected,
    Resigned: _after_resigned,
    Forfeited: _after_forfeited,
    TakenOver: _after_taken_over,
    Frozen: _after_frozen,
    Finished: _after_end,
    Voided: _after_end,
}
