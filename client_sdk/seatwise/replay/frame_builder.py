"""Builds the frames of a match from its journal, entry by entry, and a whole match for a viewer. It needs no server, and works on unfinished matches."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import Any

from seatwise.bot import Bot, ask_bot
from seatwise.errors import UsageError
from seatwise.kits import find_kit
from seatwise.kits.frames import (
    ALL_OPEN,
    Frame,
    FrameWriter,
    Narrator,
    PlayedMove,
    SeatTimes,
    TableFacts,
    Viewpoint,
    count_totals,
    is_open_to,
)
from seatwise.kits.game_kit import RaceMethod
from seatwise.kits.race_steps import Thought
from seatwise.samples import sample
from seatwise_referee.ending import Ending
from seatwise_referee.game import Json, Prompt, Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import (
    Agreed,
    AgreedReason,
    Called,
    Dealt,
    Defaulted,
    DefaultReason,
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
    entry_from_json,
)
from seatwise_referee.position import Position, first_position, position_after
from seatwise_referee.setup import Setup
from seatwise_referee.verify import verify_line
from seatwise_referee.verify.header import setup_of

HINT_SEED = 0
"""Of the sample's chance, so that a hint is the same each time."""


class HintSource:
    """Asks the sample bot of a game that gives hints. It sees what the seat saw, and no more."""

    def __init__(self, game: str) -> None:
        kit = find_kit(game)
        self.bot_name = kit.hint_sample
        """The name of the sample."""
        self._kit = kit
        self._game = GAMES[game]
        self._writer = kit.load_frame_writer()

    def suggest_move(self, pace: str, view: Any) -> str:
        """Return what the sample does with this view, as the end of a sentence: "plays R3"."""
        method = self._kit.find_method(pace)
        bot = sample(self.bot_name, self._kit.name)()
        bot.chance = Random(HINT_SEED)
        if isinstance(method, RaceMethod):
            return ", and ".join(map(self._writer.describe_move, self._race_moves(bot, method, view)))
        return self._writer.describe_move(self._game.move_to_json(ask_bot(bot, method, view)))

    def _race_moves(self, bot: Bot, method: RaceMethod, view: Any) -> list[Json]:
        """Return the sample's last layout, and the move after it, if there is one."""
        reader = method.new_reader(view)
        steps = (reader.read_step(answer) for answer in getattr(bot, method.name)(view))
        moves = [step for step in steps if not isinstance(step, Thought)]
        lays = [move for move in moves if self._kit.race_rules.is_lay(move)]
        return list(map(self._game.move_to_json, [*lays[-1:], *moves[-1:]][-2:] if lays else moves[-1:]))


MOST_NAME_LETTERS = 80
"""The most letters of a name that are shown."""

_FORFEITS = {
    Ending.TIMED_OUT: "forfeits: its time ran out too often",
    Ending.ILLEGAL_MOVES: "forfeits: it made too many illegal moves",
    Ending.NEVER_SAT: "forfeits: it never sat down",
}

_DEFAULTS = {
    DefaultReason.TIMED_OUT: "{name}'s time is over, so the referee plays for it: it {what}.",
    DefaultReason.FORFEITED: "{name} has forfeited, so the referee plays for it: it {what}.",
    DefaultReason.RESIGNED: "{name} has resigned, so the referee plays for it: it {what}.",
}


def short_names(bots: Sequence[str]) -> tuple[str, ...]:
    """Return a short name for each bot of a match, all different.

    >>> short_names(["bots/ann/versions/1", "bots/bob/versions/2", "bots/ann/versions/1"])
    ('ann (seat 0)', 'bob', 'ann (seat 2)')
    """
    short = [make_printable(bot.removeprefix("bots/").partition("/")[0] or bot) for bot in bots]
    times = Counter(short)
    return tuple(f"{name} (seat {seat})" if times[name] > 1 else name for seat, name in enumerate(short))


def make_printable(text: str) -> str:
    """Return a name of a record as text that is safe to print: a record may hold anything where a name belongs.

    >>> make_printable("ann\\x1b[2J")
    'ann\\\\x1b[2J'
    """
    cut = text[: MOST_NAME_LETTERS + 1]
    shown = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in cut)
    return shown if len(shown) <= MOST_NAME_LETTERS else f"{shown[:MOST_NAME_LETTERS]}..."


def join_names(names: Sequence[str]) -> str:
    """Return the names as a list in a sentence.

    >>> join_names(["ann", "bob", "eve"])
    'ann, bob and eve'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def describe_entry(
    entry: Entry, moves: Sequence[PlayedMove], names: Sequence[str], writer: FrameWriter
) -> str:
    """Return the entry as a sentence; "" for an entry that no step is made of.

    `moves` are its moves as the viewpoint may know them. No other part of the entry says what was played.
    """
    match entry:
        case Moved():
            return " ".join(f"{names[each.seat]} {_describe_move(each, writer)}." for each in moves)
        case Defaulted():
            return " ".join(
                _DEFAULTS[entry.reason].format(name=names[each.seat], what=_describe_move(each, writer))
                for each in moves
            )
        case Called():
            callers = [names[call.seat] for call in entry.calls]
            at = " at the same time" if len(callers) > 1 else ""
            return f"{join_names(callers)} {'call' if len(callers) > 1 else 'calls'}{at}."
        case Agreed():
            is_timeout = entry.reason is AgreedReason.TIMED_OUT
            return "The time of the round is over." if is_timeout else "All agree to end the round."
        case Resigned():
            return f"{names[entry.seat]} resigns."
        case Forfeited():
            return f"{names[entry.seat]} {_FORFEITS.get(entry.ending, 'forfeits')}."
        case Finished():
            return _describe_end(entry, names)
        case Voided():
            return f"The match is void ({entry.reason}): it has no result."
    return ""


def _describe_move(played: PlayedMove, writer: FrameWriter) -> str:
    return "moves" if played.move is None else writer.describe_move(played.move)


def _describe_end(entry: Finished, names: Sequence[str]) -> str:
    points: Any = entry.outcome["points"]
    ranks: Any = entry.result["ranks"]
    winners = [name for name, rank in zip(names, ranks, strict=True) if rank == 1]
    verb = "win together" if len(winners) > 1 else "wins"
    scored = ", ".join(f"{name} {own}" for name, own in zip(names, points, strict=True))
    return f"The match is over, and {join_names(winners)} {verb}. Points: {scored}."


_NO_STEPS = (Sat, Rejected, TakenOver, Frozen)
"""Entries that change nothing on the table. A rejected move is counted in `SeatTimes`."""


def build_frames(
    setup: Setup,
    entries: Iterable[Entry],
    viewpoint: Viewpoint = ALL_OPEN,
    hints: HintSource | None = None,
    writer: FrameWriter | None = None,
) -> list[Frame]:
    """Return the positions of a match, one for each step.

    A step is a deal, a move, a call, the end of a round, a seat that leaves, or the end. The step that ends a round shows
    the table at its end; the next frame shows the next deal.

    Args:
        setup: The match as it was created.
        entries: Its journal, or the beginning of it. The entries must be genuine: check a record first.
        viewpoint: `ALL_OPEN`, `SPECTATOR`, or the number of a seat. A frame holds only what that viewpoint may know.
        hints: Finds the moves of house bots in each position; `None` for no hints.
        writer: Writes the positions, if not the writer of the game.

    Returns:
        The frames in their order, at least one if the cards are dealt.
    """
    builder = FrameBuilder(setup, viewpoint, hints, writer)
    return [frame for entry in entries for frame in builder.add_entry(entry)]


class FrameBuilder:
    """Builds frames as the journal of a match grows. See `build_frames` for the arguments."""

    def __init__(
        self,
        setup: Setup,
        viewpoint: Viewpoint = ALL_OPEN,
        hints: HintSource | None = None,
        writer: FrameWriter | None = None,
    ) -> None:
        self.names = short_names(setup.bots)
        """The short names of the bots, by seat."""
        self.writer = writer or find_kit(setup.game).load_frame_writer()
        """The writer of the game."""
        self._setup = setup
        self._game = GAMES[setup.game]
        self._viewpoint = viewpoint
        self._hint_source = hints
        self._last_hints: tuple[str, ...] = ()
        self._seats = tuple(map(Seat, range(len(setup.bots))))
        self._position = first_position(setup)
        self._table: TableFacts = {}
        """The table of the newest frame."""
        self._last: tuple[TableFacts, tuple[Json, ...]] | None = None
        """The table when the match is over: all that lies open, and what each seat holds."""
        self._used_ms = [0] * len(setup.bots)
        self._longest_ms = [0] * len(setup.bots)

    @property
    def step_number(self) -> int:
        """The number of the open question; 0 before the deal, and when the match is over."""
        return self._position.prompt.number if self._position.prompt else 0

    @property
    def shown_view(self) -> Any:
        """The view of a spectator now; `None` before the deal."""
        return None if self._position.state is None else self._game.view(self._position.state, None)

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
        is_same = (
            before.prompt and self._position.prompt and before.prompt.number == self._position.prompt.number
        )
        if (
            is_same
            and self._viewpoint != ALL_OPEN
            and self._is_step_of_choices(before)
            and isinstance(entry, Moved)
        ):
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
        table = self.writer.write_table(view)
        own = self._own(self._position.state, self.writer.write_own)
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
        last_table, self._table = self._table, table
        return Frame(
            kind=entry.kind if entry else "round",
            says=self._describe_step(entry, moves, before, table),
            asked=tuple(sorted(prompt.seats)) if prompt else (),
            moves=moves,
            points=count_totals(table, len(self._seats), is_running=False),
            table=table,
            own=own,
            times=tuple(map(self._times_of, self._seats)),
            left=tuple(str(own.left.ending) if own.left else "" for own in self._position.seats),
            seq=self._position.seq if is_all else None,
            at_ms=self._position.at_ms if is_all else None,
            hints=self._last_hints,
            turn=self.writer.describe_turn(last_table, table, self.names),
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
        if narrated := self._narrate(entry, moves, before):
            return narrated
        views = [self._game.view(state, None) for state in (before.state, self._position.state)]
        return f"{said} {self.writer.describe_change(views[0], views[1], self.names)}".strip()

    def _is_step_of_choices(self, before: Position) -> bool:
        """Return whether several seats of a game from outside choose at once: who has chosen is known to none before all have."""
        return isinstance(self.writer, Narrator) and before.state is not None and before.state.is_joint

    def _narrate(self, entry: Entry, moves: Sequence[PlayedMove], before: Position) -> str:
        """Return the game's own sentence on a step that moves have completed; "" if there is none."""
        if (
            not isinstance(self.writer, Narrator)
            or not moves
            or self._position.state.number == before.state.number
        ):
            return ""
        is_joint, is_all = before.state.is_joint, self._viewpoint == ALL_OPEN
        audience = Seat(self._viewpoint) if isinstance(self._viewpoint, int) else None
        seen = [self._game.view(state, audience) for state in (before.state, self._position.state)]
        mover, move = (None, None) if is_joint else (moves[0].seat, moves[0].move)
        said = self.writer.narrate_step(seen[0], move, mover, seen[1], self.names)
        if is_joint:
            own = describe_entry(entry, moves, self.names, self.writer) if is_all else "All have chosen."
            return f"{own} {said}".strip()
        if said and isinstance(entry, Defaulted):
            return f"{self.names[moves[0].seat]} gave no move in time, or has left: the referee plays for it. {said}"
        return said

    def _own(self, state: Any, write: Callable[[Any], Json]) -> tuple[Json, ...]:
        return tuple(
            write(self._game.view(state, seat)) if is_open_to(self._viewpoint, seat) else None
            for seat in self._seats
        )

    def _times_of(self, seat: Seat) -> SeatTimes | None:
        if not is_open_to(self._viewpoint, seat):
            return None
        own, used_ms, longest_ms = self._position.seats[seat], self._used_ms[seat], self._longest_ms[seat]
        return SeatTimes(own.bank_ms, used_ms, longest_ms, own.strikes, own.rejections)

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


# A whole match for a viewer: what is fixed about it, its frames, and its result


@dataclass(frozen=True, slots=True)
class MatchReplay:
    """A match with its frames. `to_json` is what the viewer in a browser takes."""

    match: str
    """The name of the match: matches/{id}."""

    game: str
    """The name of the game."""

    bots: tuple[str, ...]
    """The bots by seat, each as bots/{bot}/versions/{version}."""

    viewpoint: Viewpoint
    """The viewpoint of all frames."""

    frames: tuple[Frame, ...]
    """The positions, one for each step."""

    points: tuple[int, ...] = ()
    """The points by seat; empty while the match goes on."""

    ranks: tuple[int, ...] = ()
    """The ranks that count, by seat; empty while the match goes on."""

    endings: tuple[str, ...] = ()
    """How the match ended for each seat, an `Ending`; empty while it goes on."""

    chain: str = ""
    """The end of the record's chain, in hex; empty without a record."""

    @property
    def decisive_step(self) -> int:
        """The first step from which on no other bot has as many points as a winner, those of the open round included.

        The last step where no points decide, as after a forfeit, or while the match goes on.
        """
        last, seats = len(self.frames) - 1, range(len(self.bots))
        others = [seat for seat in seats if self.ranks and self.ranks[seat] > 1]
        for step in range(last, -1, -1):
            totals = count_totals(self.frames[step].table, len(self.bots))
            least = min((totals[seat] for seat in seats if seat not in others), default=0)
            if not others or max(totals[seat] for seat in others) >= least:
                return min(step + 1, last)
        return 0

    @property
    def names(self) -> tuple[str, ...]:
        """The short names of the bots, by seat."""
        return short_names(self.bots)

    def to_json(self) -> dict[str, Any]:
        """Return the replay as JSON. Its keys are the names of the fields, `names` and `decisive_step`."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        frames = [frame.to_json() for frame in self.frames]
        return told | {"names": self.names, "decisive_step": self.decisive_step, "frames": frames}


def build_replay(
    record: dict[str, Any],
    viewpoint: Viewpoint = ALL_OPEN,
    *,
    has_hints: bool = False,
    writer: FrameWriter | None = None,
) -> MatchReplay:
    """Return the replay of a record, as JSON, that is known to be genuine, such as one that this server wrote.

    See `read_replay` for the arguments. `writer` writes the positions, if not the writer of the game.
    """
    setup = setup_of(record)
    hints = HintSource(setup.game) if has_hints else None
    return MatchReplay(
        match=make_printable(setup.match),
        game=setup.game,
        bots=tuple(map(make_printable, setup.bots)),
        viewpoint=viewpoint,
        frames=tuple(build_frames(setup, map(entry_from_json, record["entries"]), viewpoint, hints, writer)),
        points=tuple(record["outcome"]["points"]),
        ranks=tuple(record["result"]["ranks"]),
        endings=tuple(record["endings"]),
        chain=record["chain"],
    )


def read_replay(
    line: str | bytes, viewpoint: Viewpoint = ALL_OPEN, *, has_hints: bool = False
) -> MatchReplay:
    """Check a record, and return its replay.

    Args:
        line: The record, one line of a file of records.
        viewpoint: `ALL_OPEN`, `SPECTATOR`, or the number of a seat.
        has_hints: Whether frames say what the strongest sample bot would play. That takes seconds.

    Returns:
        The whole match.

    Raises:
        UsageError: The record is not genuine, or there is no such seat. The text says what is wrong.
    """
    verdict = verify_line(line)
    if verdict.fault or verdict.setup is None:
        is_unchecked = verdict.fault is not None and verdict.fault.is_unchecked
        raise UsageError(str(verdict.fault) if is_unchecked else f"the record is wrong: {verdict.fault}")
    seats = len(verdict.setup.bots)
    if isinstance(viewpoint, int) and viewpoint not in range(seats):
        raise UsageError(f"there is no seat {viewpoint}: the seats are 0 to {seats - 1}")
    return build_replay(json.loads(line), viewpoint, has_hints=has_hints)
