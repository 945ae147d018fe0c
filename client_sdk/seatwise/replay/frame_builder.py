"""Builds the frames of a match from its journal, entry by entry. It needs no server, and works on unfinished matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from seatwise.kits import find_kit
from seatwise.kits.frames import ALL_OPEN, Frame, PlayedMove, SeatTimes, TableFacts, Viewpoint, is_open_to
from seatwise.replay.hints import HintSource
from seatwise.replay.sentences import describe_entry, short_names
from seatwise_referee.game import Json, Prompt, Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import (
    Agreed,
    Called,
    Dealt,
    Defaulted,
    Entry,
    Frozen,
    Moved,
    Rejected,
    Sat,
    TakenOver,
)
from seatwise_referee.position import Position, first_position, position_after
from seatwise_referee.setup import Setup

_NO_STEPS = (Sat, Rejected, TakenOver, Frozen)
"""Entries that change nothing on the table. A rejected move is counted in `SeatTimes`."""


def build_frames(
    setup: Setup, entries: Iterable[Entry], viewpoint: Viewpoint = ALL_OPEN, hints: HintSource | None = None
) -> list[Frame]:
    """Return the positions of a match, one for each step.

    A step is a deal, a move, a call, the end of a round, a seat that leaves, or the end. The step that ends a round shows
    the table at its end; the next frame shows the next deal.

    Args:
        setup: The match as it was created.
        entries: Its journal, or the beginning of it. The entries must be genuine: check a record first.
        viewpoint: `ALL_OPEN`, `SPECTATOR`, or the number of a seat. A frame holds only what that viewpoint may know.
        hints: Finds the moves of house bots in each position; `None` for no hints.

    Returns:
        The frames in their order, at least one if the cards are dealt.
    """
    builder = FrameBuilder(setup, viewpoint, hints)
    return [frame for entry in entries for frame in builder.add_entry(entry)]


class FrameBuilder:
    """Builds frames as the journal of a match grows. See `build_frames` for the arguments `setup`, `viewpoint` and `hints`."""

    def __init__(
        self, setup: Setup, viewpoint: Viewpoint = ALL_OPEN, hints: HintSource | None = None
    ) -> None:
        self.names = short_names(setup.bots)
        """The short names of the bots, by seat."""
        self.writer = find_kit(setup.game).load_frame_writer()
        """The writer of the game."""
        self._setup = setup
        self._game = GAMES[setup.game]
        self._viewpoint = viewpoint
        self._hint_source = hints
        self._last_hints: tuple[str, ...] = ()
        self._seats = tuple(map(Seat, range(len(setup.bots))))
        self._position = first_position(setup)
        self._last: tuple[TableFacts, tuple[Json, ...]] | None = None
        """The table when the match is over: all that lies open, and what each seat holds."""
        self._used_ms = [0] * len(setup.bots)
        self._longest_ms = [0] * len(setup.bots)

    def add_entry(self, entry: Entry) -> list[Frame]:
        """Return the frames of one more entry: none, one, or two if it ends a round and another one begins.

        Raises `IllegalMove` if the entry is not genuine.
        """
        before = self._position
        self._position = position_after(before, entry, self._setup, self._game)
        for seat, charged_ms in charges_in(entry):
            self._used_ms[seat] += charged_ms
            self._longest_ms[seat] = max(self._longest_ms[seat], charged_ms)
        if self._position.state is None or isinstance(entry, _NO_STEPS):
            return []
        return list(self._frames_of(entry, before))

    def _frames_of(self, entry: Entry, before: Position) -> Iterator[Frame]:
        if self._last is not None:
            yield self._make_frame(entry, before, *self._last)
            return
        view_before = None if before.state is None else self._game.view(before.state, None)
        view = self._game.view(self._position.state, None)
        at_end = None if view_before is None else self.writer.write_round_end(view_before, view)
        if at_end is not None:
            own = self._own(before.state, self.writer.write_own_at_round_end)
            yield self._make_frame(entry, before, at_end, own)
            if self._position.prompt is None:
                self._last = at_end, own
                return
        own = self._own(self._position.state, self.writer.write_own)
        table = self.writer.write_table(view)
        yield self._make_frame(None if at_end else entry, before, table, own, self._position.prompt)

    def _make_frame(
        self,
        entry: Entry | None,
        before: Position,
        table: TableFacts,
        own: tuple[Json, ...],
        prompt: Prompt | None = None,
    ) -> Frame:
        """Make a frame of this entry; `None` is the deal of another round."""
        is_all = self._viewpoint == ALL_OPEN
        moves = tuple(self._moves_in(entry)) if entry else ()
        is_other = self._is_other_than_hint(entry)
        self._last_hints = self._hints_for(prompt)
        return Frame(
            kind=entry.kind if entry else "round",
            says=self._describe_step(entry, moves, before, table),
            asked=tuple(sorted(prompt.seats)) if prompt else (),
            moves=moves,
            points=_total_points(table, len(self._seats)),
            table=table,
            own=own,
            times=tuple(map(self._times_of, self._seats)),
            left=tuple(str(own.left.ending) if own.left else "" for own in self._position.seats),
            seq=self._position.seq if is_all else None,
            at_ms=self._position.at_ms if is_all else None,
            hints=self._last_hints,
            is_other_than_hint=is_other,
        )

    def _describe_step(
        self, entry: Entry | None, moves: Sequence[PlayedMove], before: Position, table: TableFacts
    ) -> str:
        if entry is None or isinstance(entry, Dealt):
            number = table.get("round")
            return f"Round {number} is dealt." if number else "The cards are dealt."
        said = describe_entry(entry, moves, self.names, self.writer)
        if before.state is None or before.state is self._position.state:
            return said
        views = [self._game.view(state, None) for state in (before.state, self._position.state)]
        return f"{said} {self.writer.describe_change(views[0], views[1], self.names)}".strip()

    def _own(self, state: Any, write: Callable[[Any], Json]) -> tuple[Json, ...]:
        return tuple(
            write(self._game.view(state, seat)) if is_open_to(self._viewpoint, seat) else None
            for seat in self._seats
        )

    def _times_of(self, seat: Seat) -> SeatTimes | None:
        if not is_open_to(self._viewpoint, seat):
            return None
        own = self._position.seats[seat]
        return SeatTimes(
            own.bank_ms, self._used_ms[seat], self._longest_ms[seat], own.strikes, own.rejections
        )

    def _moves_in(self, entry: Entry) -> Iterator[PlayedMove]:
        charges = dict(charges_in(entry))
        for seat, move in _played_in(entry):
            if is_open_to(self._viewpoint, seat):
                yield PlayedMove(seat, move, charges.get(seat))
            else:
                yield PlayedMove(seat, self.writer.write_open_move(move), None)

    def _hints_for(self, prompt: Prompt | None) -> tuple[str, ...]:
        if self._hint_source is None:
            return ()
        return tuple(self._hint_for(seat, prompt, self._hint_source) for seat in self._seats)

    def _hint_for(self, seat: Seat, prompt: Prompt | None, source: HintSource) -> str:
        is_playing = prompt and seat in prompt.seats and not self._position.seats[seat].left
        if not (prompt and is_playing and is_open_to(self._viewpoint, seat)):
            return ""
        view = self._game.view(self._position.state, seat)
        return f"{source.bot_name} {source.suggest_move(prompt.pace, view)}"

    def _is_other_than_hint(self, entry: Entry | None) -> bool:
        if not isinstance(entry, Moved) or self._hint_source is None:
            return False
        hint = self._last_hints[entry.seat] if self._last_hints else ""
        return bool(hint) and hint != f"{self._hint_source.bot_name} {self.writer.describe_move(entry.move)}"


def _played_in(entry: Entry) -> Iterator[tuple[Seat, Json]]:
    match entry:
        case Moved():
            yield entry.seat, entry.move
        case Defaulted():
            yield from ((each.seat, each.move) for each in entry.moves)
        case Called():
            for call in entry.calls:
                yield call.seat, {"call": True}


def charges_in(entry: Entry) -> Iterator[tuple[Seat, int]]:
    """Yield what the entry charged which seat for an answer, or for giving none, in milliseconds."""
    match entry:
        case Moved():
            yield entry.seat, entry.charged_ms
        case Defaulted():
            yield from ((each.seat, each.charge.charged_ms) for each in entry.moves if each.charge)
        case Called():
            yield from ((call.seat, call.charge.charged_ms) for call in entry.calls)
        case Agreed():
            yield from ((each.seat, each.charge.charged_ms) for each in entry.asked)


def _total_points(table: TableFacts, seats: int) -> tuple[int, ...]:
    rounds = table.get("points") or ()
    return tuple(sum(each[seat] for each in rounds) for seat in range(seats))
