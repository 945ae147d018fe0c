"""The decision on one command: its entries, the position after them, and the effects that the match asks its shell for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypedDict

from seatwise_referee.ending import Ending, RejectReason, result_ranks
from seatwise_referee.game import Json, Seat
from seatwise_referee.journal import (
    Charge,
    Defaulted,
    DefaultMove,
    DefaultReason,
    Entry,
    Finished,
    Forfeited,
    Rejected,
)
from seatwise_referee.position import AnyGame, Position, position_after
from seatwise_referee.setup import Setup


class _FrequentEffect:
    """An effect of each move. It compares as a dataclass does, and compiled code makes it in a tenth of the time."""

    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({fields})"


class ShowView(_FrequentEffect):
    """Show the seat its view. The shell asks `Match.update_for` for it when it writes to the seat's stream."""

    __match_args__ = ("seat", "prompt")

    def __init__(self, seat: Seat, prompt: int) -> None:
        self.seat, self.prompt = seat, prompt


class AcceptMove(_FrequentEffect):
    """Tell the seat that its move stands."""

    __match_args__ = ("seat", "request_id", "charged_ms")

    def __init__(self, seat: Seat, request_id: str, charged_ms: int) -> None:
        self.seat, self.request_id, self.charged_ms = seat, request_id, charged_ms


@dataclass(slots=True)
class RejectRequest:
    """Tell the seat that its request does not stand, and why."""

    seat: Seat
    request_id: str
    reason: RejectReason
    message: str


class WakeAt(_FrequentEffect):
    """Call `Match.tick` at this time, in milliseconds since the match was opened; `None` is never."""

    __match_args__ = ("at_ms",)

    def __init__(self, at_ms: int | None) -> None:
        self.at_ms = at_ms


@dataclass(slots=True)
class ShowChange:
    """The view of these seats has changed without an entry: show it to seats that want every change."""

    seats: tuple[Seat, ...]


@dataclass(slots=True)
class EndMatch:
    """The match is over: tell all seats."""


Effect: TypeAlias = Entry | ShowView | AcceptMove | RejectRequest | ShowChange | WakeAt | EndMatch


TIME_IS_OVER = "the time for this prompt had run out"
HAS_LEFT = "this seat has left the match; the referee plays for it"


class EntryStamp(TypedDict):
    """The number and the time of an entry."""

    seq: int
    at_ms: int


class AbsentSeat(NamedTuple):
    """A seat for which the referee plays."""

    seat: Seat
    lay: Any = None
    """Its last layout in the open race, if it left during the race: that counts."""
    charge: Charge | None = None
    """Its charge, if its time ran out."""


class Decision:
    """The value that the match and its two ways of asking share while they decide on a command.

    Only `record_entry` moves `position`. Until the shell has written the entries and confirmed them, `position`
    is ahead of what seats may see.
    """

    __slots__ = ("effects", "game", "in_time_ms", "limits", "position", "setup")

    def __init__(self, setup: Setup, game: AnyGame, position: Position) -> None:
        self.setup = setup
        self.game = game
        self.limits = limits = setup.time_control
        self.in_time_ms = {pace: limits.allowed_ms(pace, 0) for pace in limits.free_ms}
        """The highest charge that is in time without a bank, by pace."""
        self.position = position
        """The position after the last recorded entry."""
        self.effects: list[Effect] = []
        """The effects of the present command, in the order in which the shell performs them."""

    def take_effects(self) -> list[Effect]:
        """Return the effects of the command. The next command begins without any."""
        effects, self.effects = self.effects, []
        return effects

    def record_entry(self, entry: Entry, state: Any = None) -> None:
        """Record an entry, and move the position. `state` is the game's state after it, if it is known already."""
        self.position = position_after(self.position, entry, self.setup, self.game, state)
        self.effects.append(entry)

    def next_stamp(self, now: int) -> EntryStamp:
        """Return the number of the next entry and its time, which is never before that of the last entry."""
        return {"seq": self.position.seq + 1, "at_ms": max(now, self.position.at_ms)}

    def show_prompt(self) -> None:
        """Show the open prompt to the seats that are asked; at the end of the match, tell all seats."""
        prompt = self.position.prompt
        if self.position.end is not None:
            self.effects.append(EndMatch())
        elif prompt is not None:
            seats = prompt.seats if len(prompt.seats) == 1 else sorted(prompt.seats)
            self.effects.extend([ShowView(seat, prompt.number) for seat in seats])

    # Entries that turns and races have in common

    def reject_answer(
        self, seat: Seat, request_id: str, reason: RejectReason, message: str, now: int
    ) -> None:
        """Record that an answer to the open prompt does not stand, and tell its seat."""
        prompt = self.position.prompt
        assert prompt is not None
        entry = Rejected(
            seat=seat,
            prompt=prompt.number,
            reason=reason,
            request_id=request_id,
            message=message,
            **self.next_stamp(now),
        )
        self.record_entry(entry)
        self.effects.append(RejectRequest(seat, request_id, reason, message))

    def reject_illegal(self, seat: Seat, request_id: str, message: str, now: int) -> bool:
        """Reject an illegal move. Returns whether it was one too many, so that the seat has forfeited."""
        self.reject_answer(seat, request_id, RejectReason.ILLEGAL, message, now)
        is_forfeit = self.position.seats[seat].rejections >= self.limits.max_rejections
        if is_forfeit:
            self.forfeit_seat(seat, Ending.ILLEGAL_MOVES, now)
        return is_forfeit

    def forfeit_seat(self, seat: Seat, ending: Ending, now: int) -> None:
        """Record that the referee takes the seat out of the match."""
        self.record_entry(Forfeited(seat=seat, ending=ending, **self.next_stamp(now)))

    def forfeit_for_strikes(self, seats: Iterable[Seat], now: int) -> None:
        """Take those of the seats out of the match that have too many time-outs."""
        for seat in seats:
            if self.position.seats[seat].strikes >= self.limits.max_strikes:
                self.forfeit_seat(seat, Ending.TIMED_OUT, now)

    def play_defaults(self, reason: DefaultReason, absent: Iterable[AbsentSeat], now: int) -> None:
        """Play for seats that give no answer to the open prompt, and record it."""
        prompt, state = self.position.prompt, self.position.state
        assert prompt is not None
        played: list[DefaultMove] = []
        for seat, lay, charge in absent:
            if lay is not None:
                state = self.game.play(state, seat, lay)
                played.append(DefaultMove(seat, self.game.move_to_json(lay)))
            move = self.game.default_move(state, seat)
            state = self.game.play(state, seat, move)
            played.append(DefaultMove(seat, self.game.move_to_json(move), charge))
        entry = Defaulted(reason=reason, prompt=prompt.number, moves=tuple(played), **self.next_stamp(now))
        self.record_entry(entry)

    def record_finish(self, now: int) -> None:
        """Record the result of a game that is over."""
        seats = self.position.seats
        outcome = self.game.outcome(self.position.state)
        assert outcome is not None
        ranks = result_ranks(outcome.ranks, [own.left for own in seats])
        rounds: list[Json] = [list(each) for each in outcome.rounds]
        entry = Finished(
            outcome={"points": list(outcome.points), "ranks": list(outcome.ranks), "rounds": rounds},
            result={"ranks": list(ranks)},
            endings=tuple(own.ending for own in seats),
            **self.next_stamp(now),
        )
        self.record_entry(entry)
