"""Plays a match again, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from seatwise_referee.ending import Ending, result_ranks
from seatwise_referee.game import IllegalMove, Json, Outcome, Prompt, Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import (
    Agreed,
    Called,
    Dealt,
    Defaulted,
    DefaultReason,
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
    canonical_json,
    fault_of_choices,
)
from seatwise_referee.match import FEWEST_SEATS
from seatwise_referee.mixed_move import MOST_CHOICE_WEIGHT, MOST_MIXED_CHOICES, check_choices, draw_choice
from seatwise_referee.position import Position, SeatState, first_position, position_after
from seatwise_referee.setup import Setup
from seatwise_referee.time_control import TimeControl
from seatwise_referee.verify.charges import (
    EntryContext,
    OpenQuestion,
    after_agreed,
    after_called,
    after_defaulted,
    check_asked,
    check_charge,
    check_no_race,
    question_of,
)
from seatwise_referee.verify.fault import BadRecord, quote_value

_new_tuple: Final = tuple.__new__


def check_draw(entry: DrawnMove, setup: Setup, nonces: Iterable[bytes | None]) -> None:
    """Check the number of choices and their weights, and that the move is the one that was drawn. Raises `BadRecord`."""
    choices = entry.choices
    if not 1 <= len(choices) <= MOST_MIXED_CHOICES:
        raise BadRecord(f"a mixed move has 1 to {MOST_MIXED_CHOICES} choices, and here are {len(choices)}")
    for choice in choices:
        if choice.weight > MOST_CHOICE_WEIGHT:
            raise BadRecord(f"the weight {quote_value(choice.weight)} is above {MOST_CHOICE_WEIGHT}")
    if fault := fault_of_choices(entry.seq, choices):
        raise BadRecord(fault)
    index = draw_choice(setup, nonces, entry.seat, entry.prompt, (choice.weight for choice in choices))
    if canonical_json(choices[index].move) != canonical_json(entry.move):
        raise BadRecord(
            f"seat {entry.seat} moved {quote_value(entry.move)}, but the draw gives {quote_value(choices[index].move)}"
        )


def check_finished(entry: Finished, outcome: Outcome | None, position: Position) -> None:
    """Check that the last entry has the result of the replay."""
    assert outcome is not None  # no prompt is open
    exits = [own.left for own in position.seats]
    given: dict[str, tuple[Any, Any]] = {
        "outcome.rounds": (entry.outcome["rounds"], [list(points) for points in outcome.rounds]),
        "outcome.points": (entry.outcome["points"], list(outcome.points)),
        "outcome.ranks": (entry.outcome["ranks"], list(outcome.ranks)),
        "result.ranks": (entry.result["ranks"], list(result_ranks(outcome.ranks, exits))),
        "endings": (list(map(str, entry.endings)), [str(own.ending) for own in position.seats]),
    }
    for key, (found, right) in given.items():
        if found != right:
            raise BadRecord(
                f"{key} is {quote_value(found)}; the match played again gives {quote_value(right)}"
            )


def check_tail(record: dict[str, Any]) -> None:
    """Check that the record's tail repeats its last entry."""
    last = record["entries"][-1]
    for key in ("outcome", "result", "endings"):
        if record[key] != last[key]:
            raise BadRecord(
                f"{key} at the end of the record is {quote_value(record[key])}; "
                f"the entry `finished` says {quote_value(last[key])}"
            )


class RecordReplay:
    """The match after the entries so far, each of which was checked."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._game = GAMES[setup.game]
        self._limits = setup.time_control
        self._position = first_position(setup)
        self._last: Entry | None = None
        self._question: OpenQuestion | None = None
        self._has_exits = False
        """Whether a seat has left. Then the referee may have to play for it after a move."""

    @property
    def position(self) -> Position:
        """The position after the last entry."""
        return self._position

    def apply_entry(self, entry: Entry) -> None:
        """Check one more entry, and move the position. Raises `BadRecord`, which names the entry."""
        try:
            if self._position.end is not None:
                raise BadRecord(f"`{entry.kind}` follows `finished`, which is the end")
            required = (
                None if self._is_in_play() else required_after(self._position, self._last, self._limits)
            )
            if required is not None and self._last is not None:
                _check_required(required, entry, self._last)
            state = _REPLAY_CHECKS[type(entry)](self, entry, required is not None)
        except BadRecord as bad:
            raise bad.in_entry(entry.seq) from None
        self._move_to(position_after(self._position, entry, self._setup, self._game, state), entry)

    def _is_in_play(self) -> bool:
        """Return whether `required_after` is `None` for certain, as after nearly each move; to ask takes five times as long."""
        return type(self._last) is Moved and self._position.prompt is not None and not self._has_exits

    def _move_to(self, position: Position, entry: Entry) -> None:
        before, self._position, self._last = self._position.prompt, position, entry
        prompt = position.prompt
        if type(entry) is not Moved:
            self._has_exits = any(own.left for own in position.seats)
        if prompt is None:
            self._question = None
        elif before is None or before.number != prompt.number:
            opened: Any = (prompt, entry.seq, entry.at_ms, position.race_ms, [])
            self._question = _new_tuple(OpenQuestion, opened)  # after nearly each entry; see position.py
        elif type(entry) is TakenOver:
            self._question = OpenQuestion(prompt, self._opened_seq(entry), entry.at_ms, position.race_ms, [])
        elif self._question is not None:
            self._question = self._question._replace(prompt=prompt)
            if isinstance(entry, Frozen):
                self._question.frozen.append(entry)

    def _opened_seq(self, entry: TakenOver) -> int:
        """Return the number of the entry that brought the prompt up. A takeover only opens it again."""
        return self._question.opened_seq if self._question else entry.seq

    # One check for each kind of entry; some return the state after the entry, because they compute it anyway

    def _check_sat(self, entry: Sat, _: bool) -> None:
        if self._position.state is not None:
            raise BadRecord(f"seat {entry.seat} sat after the deal")
        if self._seat_of(entry).has_sat:
            raise BadRecord(f"seat {entry.seat} sat twice")

    def _check_dealt(self, _: Dealt, is_required: bool) -> None:
        if is_required:
            return
        if self._position.state is not None:
            raise BadRecord("dealt twice")
        waiting = [seat for seat, own in enumerate(self._position.seats) if not own.has_sat]
        raise BadRecord(f"dealt before seat {waiting[0]} had sat or been forfeited")

    def _check_moved(self, entry: Moved, _: bool) -> Any:
        question = self._question_for(entry, entry.seat)
        if question.prompt.race:
            check_no_race(question, entry)
        state = self._play_move(self._position.state, entry.seat, entry.move)
        check_charge(entry, question, self._limits, self._seat_of(entry).bank_ms)
        return state

    def _check_drawn_move(self, entry: DrawnMove, is_required: bool) -> Any:
        state = self._check_moved(entry, is_required)
        check_draw(entry, self._setup, self._position.nonces)
        for choice in entry.choices:
            self._check_choice(entry, choice.move)
        return state

    def _check_choice(self, entry: DrawnMove, move: Json) -> None:
        try:
            read = self._game.move_from_json(move)
            check_choices(self._game, self._position.state, entry.seat, [read])
        except ValueError as error:
            raise BadRecord(f"seat {entry.seat} may not {quote_value(move)}: {error}") from None

    def _check_defaulted(self, entry: Defaulted, is_required: bool) -> Any:
        return after_defaulted(entry, self._context_of(entry), is_required=is_required)

    def _check_called(self, entry: Called, _: bool) -> Any:
        return after_called(entry, self._context_of(entry))

    def _check_agreed(self, entry: Agreed, _: bool) -> Any:
        return after_agreed(entry, self._context_of(entry))

    def _check_rejected(self, entry: Rejected, _: bool) -> None:
        question = self._question_for(entry, entry.seat)
        if entry.reason == "TOO_LATE":
            check_no_race(question, entry)

    def _check_resigned(self, entry: Resigned, _: bool) -> None:
        own = self._seat_of(entry)
        if not own.has_sat:
            raise BadRecord(f"seat {entry.seat} resigned before it sat")
        if own.left:
            raise BadRecord(f"seat {entry.seat} resigned, but had left with seq {own.left.seq}")

    def _check_forfeited(self, entry: Forfeited, is_required: bool) -> None:
        if is_required:
            return
        own = self._seat_of(entry)
        if own.left:
            raise BadRecord(f"seat {entry.seat} is forfeited, but had left with seq {own.left.seq}")
        if entry.ending is Ending.NEVER_SAT:
            self._check_never_sat(entry, own)
            return
        count, most, what = _faults_of(own, entry.ending, self._limits)
        raise BadRecord(f"seat {entry.seat} is forfeited with {count} of {most} {what}")

    def _check_never_sat(self, entry: Forfeited, own: SeatState) -> None:
        if own.has_sat:
            raise BadRecord(f"seat {entry.seat} is forfeited for NEVER_SAT, but it sat")
        ends_ms = self._position.setup_began_ms + self._limits.setup_ms
        if entry.at_ms < ends_ms:
            raise BadRecord(
                f"seat {entry.seat} is forfeited for NEVER_SAT at {entry.at_ms}, before the set-up time ends at {ends_ms}"
            )
        first = next(seat for seat, each in enumerate(self._position.seats) if not each.has_sat)
        if entry.seat != first:
            raise BadRecord(f"seat {entry.seat} is forfeited for NEVER_SAT before seat {first}")

    def _check_taken_over(self, entry: TakenOver, _: bool) -> None:
        if entry.epoch <= self._position.epoch:
            raise BadRecord(f"epoch {entry.epoch} follows epoch {self._position.epoch}; epochs rise")

    def _check_frozen(self, entry: Frozen, _: bool) -> None:
        if self._question is None:
            raise BadRecord("`frozen` while nobody is asked")
        if entry.ms > entry.at_ms:
            raise BadRecord(
                f"`frozen` for {entry.ms} ms at {entry.at_ms}: that began before the match was opened"
            )

    def _check_finished(self, entry: Finished, is_required: bool) -> None:
        if is_required:
            check_finished(entry, self._game.outcome(self._position.state), self._position)
        elif self._question is None:
            raise BadRecord("`finished` before the deal")
        else:
            raise BadRecord(f"`finished` while prompt {self._question.prompt.number} is open")

    # Common to several kinds

    def _seat_of(self, entry: Sat | Moved | Resigned | Forfeited) -> SeatState:
        return self._position.seats[entry.seat]

    def _question_for(self, entry: Moved | Rejected, seat: Seat) -> OpenQuestion:
        """Return the open question, if the entry names it and this seat is asked. Raises `BadRecord`."""
        question = question_of(self._question, entry)
        check_asked(question, entry, seat)
        return question

    def _context_of(self, entry: Defaulted | Called | Agreed) -> EntryContext:
        return EntryContext(question_of(self._question, entry), self._position, self._limits, self._game)

    def _play_move(self, state: Any, seat: Seat, move: Json) -> Any:
        try:
            return self._game.play(state, seat, self._game.move_from_json(move))
        except IllegalMove as illegal:
            raise BadRecord(f"seat {seat} may not {quote_value(move)}: {illegal}") from None
        except ValueError as error:
            raise BadRecord(f"seat {seat}: {quote_value(move)} is no move: {error}") from None


def _check_required(required: RequiredEntry, entry: Entry, last: Entry) -> None:
    if not required.is_met_by(entry):
        raise BadRecord(f"{required.why}, so {required} must come at once; here is {_describe_entry(entry)}")
    if entry.at_ms != last.at_ms:
        raise BadRecord(
            f"{required.why}, so {required} must come at once, at {last.at_ms}, not at {entry.at_ms}"
        )


def _describe_entry(entry: Entry) -> str:
    seat = (
        f" of seat {entry.seat}" if isinstance(entry, Sat | Moved | Rejected | Resigned | Forfeited) else ""
    )
    return f"`{entry.kind}`{seat}"


_REPLAY_CHECKS: dict[type[Entry], Callable[[RecordReplay, Any, bool], Any]] = {
    Sat: RecordReplay._check_sat,
    Dealt: RecordReplay._check_dealt,
    Moved: RecordReplay._check_moved,
    DrawnMove: RecordReplay._check_drawn_move,
    Defaulted: RecordReplay._check_defaulted,
    Called: RecordReplay._check_called,
    Agreed: RecordReplay._check_agreed,
    Rejected: RecordReplay._check_rejected,
    Resigned: RecordReplay._check_resigned,
    Forfeited: RecordReplay._check_forfeited,
    TakenOver: RecordReplay._check_taken_over,
    Frozen: RecordReplay._check_frozen,
    Finished: RecordReplay._check_finished,
}

# The entry that the referee must write next, if the entries so far leave it no choice.


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
        return type(entry) is self.kind and _seats_and_label(entry) == (self.seats, self.label)


def _seats_and_label(entry: Entry) -> tuple[tuple[Seat, ...], str]:
    if isinstance(entry, Defaulted):
        return tuple(dict.fromkeys(move.seat for move in entry.moves)), entry.reason
    return ((entry.seat,), entry.ending) if isinstance(entry, Forfeited) else ((), "")


def required_after(position: Position, last: Entry | None, limits: TimeControl) -> RequiredEntry | None:
    """Return the entry that must follow the last one; `None` if that depends on the bots and the clock."""
    if position.end is not None:
        return None
    if position.state is None:
        return _required_in_setup(position, last)
    if isinstance(last, Moved):  # nearly always; it changes neither strikes nor rejections
        return _required_by_game(position)
    return (
        _forfeit_for(Ending.ILLEGAL_MOVES, position, limits)
        or _default_for_late_move(last)
        or _forfeit_for(Ending.TIMED_OUT, position, limits)
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


def _faults_of(own: SeatState, ending: Ending, limits: TimeControl) -> tuple[int, int, str]:
    """Return how many faults with this ending the seat has made, how many are too many, and the word for them."""
    if ending is Ending.ILLEGAL_MOVES:
        return own.rejections, limits.max_rejections, "illegal moves"
    return own.strikes, limits.max_strikes, "strikes"


def _forfeit_for(ending: Ending, position: Position, limits: TimeControl) -> RequiredEntry | None:
    for seat, own in enumerate(position.seats):
        count, most, what = _faults_of(own, ending, limits)
        if count >= most and not own.left:
            why = f"seat {seat} has {count} of {most} {what}"
            return RequiredEntry(Forfeited, why, (Seat(seat),), ending)
    return None


def _default_for_late_move(last: Entry | None) -> RequiredEntry | None:
    if isinstance(last, Rejected) and last.reason == "TOO_LATE":
        return RequiredEntry(
            Defaulted, f"seat {last.seat} answered too late", (last.seat,), DefaultReason.TIMED_OUT
        )
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
