"""For authors of games: `check_game` plays many matches of a game, and says what is wrong with it.

from seatwise.testing import check_game

def test_the_game_is_right():
    assert check_game(Leduc).faults == ()
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from time import perf_counter_ns, process_time_ns
from typing import Any, Final, NamedTuple

from seatwise.errors import UsageError
from seatwise.hosting import Chance, HostedGame
from seatwise.kits import OWN_KITS
from seatwise.kits.game_kit import GameKit
from seatwise.kits.hosted.installed_games import make_kit
from seatwise_referee.game import IllegalMove, Options, Seat
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.hosted.hosted_rules import HostedRules, HostedState
from seatwise_referee.hosted.payload import HostedMove, HostedView

SLOWEST_STEP_MS: Final = 20.0
"""The most milliseconds of CPU time that a step may take on average of its ten slowest runs, on the machine of the check."""

LONGEST_STEP_MS: Final = 10 * SLOWEST_STEP_MS
"""The same by the clock on the wall, for a step that waits. On a busy machine any step takes longer than its CPU time."""

MATCHES: Final = 30
"""The matches that are played by default."""

NOTHING_HIDDEN: Final = "not checked: nothing is hidden from one seat alone"
"""The word on the secrets of a game that shows the same to all."""

_SLOW_RUNS = 10
_SOME_MOVES = 20
_STRANGE_MOVES = (
    "null",
    "true",
    "0",
    "-1",
    "9007199254740991",
    '""',
    '"no move of this game"',
    "[]",
    "[[null]]",
    "{}",
    '{"x":[]}',
)
"""Moves that a bot could send to any game."""


@dataclass(frozen=True, slots=True)
class GameReport:
    """The result of a check."""

    game: str
    """The name of the game."""

    faults: tuple[str, ...]
    """A sentence for each fault; empty if none was found."""

    secrets: str
    """"checked", or "not checked" and why: nothing is hidden, or a game without `resample_state` cannot be checked."""

    matches: int
    """The number of matches that were played."""

    moves: int
    """The number of moves in them."""

    step_ms: float
    """The mean CPU time of a step, in milliseconds."""

    digest: str = ""
    """SHA-256 over all moves and last views, in hex: the same in every process, whatever its order of sets."""

    def __str__(self) -> str:
        lines = [f"{self.game}: {fault}" for fault in self.faults] or [f"{self.game}: nothing wrong"]
        lines.append(
            f"{self.matches} matches, {self.moves} moves, {self.step_ms:.2f} ms a step; secrets: {self.secrets}"
        )
        return "\n".join(lines)


def check_game(
    game: object, *, matches: int = MATCHES, seed: int = 1, limit_s: float | None = None
) -> GameReport:
    """Play random matches of a game from outside, and look for everything that would void a match.

    Args:
        game: A class derived from `HostedGame`, an object of one, a `HostedKit`, or the game's kit.
        matches: The number of matches, at least 1. They are spread over all table sizes and values of options.
        seed: Any number. The same seed plays the same matches.
        limit_s: The CPU time, in seconds, after which no further move is checked. Then slow steps are no fault. `None` for no limit.

    Returns:
        The faults, each as a sentence. A game without `resample_state` has "secrets: not checked".

    Raises:
        UsageError: `matches` is less than 1.
    """
    if matches < 1:
        raise UsageError(f"matches: must be 1 or more, not {matches}")
    try:
        kit = game if isinstance(game, GameKit) else make_kit(game)
        if kit.is_hosted and kit.name in {own.name for own in OWN_KITS}:
            raise GameFault(f"{kit.name}: there is another game {kit.name}")
    except GameFault as fault:
        name = str(getattr(game, "name", "") or "the game")
        faults = (str(fault).removeprefix(f"{name}: "),)
        return GameReport(name, faults, "not checked: the game cannot be hosted", 0, 0, 0.0)
    if not isinstance(kit.game, HostedRules):
        raise UsageError(f"{kit.name}: it is no game from outside; the tests of Seatwise check its own games")
    return _GameChecks(kit.game, seed, limit_s).check_matches(matches)


class _GameChecks:
    """The checks of one game. Each fault is told once."""

    def __init__(self, rules: HostedRules, seed: int, limit_s: float | None = None) -> None:
        self._ends_ns = None if limit_s is None else process_time_ns() + int(limit_s * 1e9)
        self._rules = _TimedRules(rules.game, rules.package)
        self._game: HostedGame[Any] = rules.game
        self._seed = seed
        self._chance = random.Random(seed)
        self._faults: dict[str, None] = {}
        self._has_resampled = False
        self._hides_anything = False
        """Whether a seat or a spectator is shown anything that another is not, apart from its own number."""
        self._digest = sha256()
        self._moves = 0
        self._cpu_times: list[_StepTime] = []
        self._wall_times: list[_StepTime] = []

    def check_matches(self, matches: int) -> GameReport:
        """Play and check. A match that fails is not continued."""
        played = 0
        for number in range(matches):
            played += 1
            try:
                self._check_match(number)
            except GameFault as fault:
                self._add_fault(str(fault))
            if len(self._faults) >= 10 or self._is_late:
                break
        if not self._moves and not self._faults:
            self._add_fault("no seat is ever asked: find_turn returns None at the start of every match")
        if self._ends_ns is None:
            self._check_time(self._cpu_times, SLOWEST_STEP_MS, "of CPU time")
            self._check_time(self._wall_times, LONGEST_STEP_MS, "by the clock, and wait for something")
        secrets, digest = self._describe_secrets(), self._digest.hexdigest()
        mean_ms = sum(each.ns for each in self._cpu_times) / max(1, len(self._cpu_times)) / 1e6
        return GameReport(
            self._rules.name, tuple(self._faults), secrets, played, self._moves, mean_ms, digest
        )

    @property
    def _is_late(self) -> bool:
        return self._ends_ns is not None and process_time_ns() > self._ends_ns

    def _describe_secrets(self) -> str:
        if not self._has_resampled and not self._hides_anything:
            return NOTHING_HIDDEN
        if not self._game.can_resample():
            return "not checked: the game has no resample_state"
        if not self._has_resampled:
            return "not checked: resample_state never changes anything that another seat sees"
        return "checked"

    def _note_secrets(self, state: HostedState) -> None:
        """Note whether a seat is shown anything alone, and whether drawing it again changes what any other seat sees."""
        if not self._hides_anything:
            first, *others = (
                {name: value for name, value in json.loads(view.text).items() if value != view.seat}
                for view in state.views
            )
            self._hides_anything = any(each != first for each in others)
        if self._game.can_resample() and not self._has_resampled:
            self._has_resampled = self._rules.is_changed_by_resampling(state)

    def _add_fault(self, text: str) -> None:
        self._faults.setdefault(text.removeprefix(f"{self._rules.name}: "))

    def _check_match(self, number: int) -> None:
        sizes = self._rules.table_sizes
        seats, options = sizes[number % len(sizes)], self._draw_options(number)
        seed = sha256(f"check-game/{self._seed}/{number}".encode()).digest()
        state, *once = self._rules.run_timed(lambda: self._rules.deal(seats, seed, options))
        again, *twice = self._rules.run_timed(lambda: self._rules.deal(seats, seed, options))
        self._note_times(once, twice)
        self._check_repeat("start_match", state, again)
        self._note_secrets(state)
        self._check_drawings(state)
        moves: list[HostedMove] = []
        while state.asked is not None:
            if self._is_late:
                return
            move = self._choose_move(number, state, state.asked)
            after = self._step(state, state.asked, move)
            self._check_sentences(state, state.asked, move, after)
            self._check_drawings(after)
            moves.append(move)
            state = after
        texts = [move.text for move in moves] + [view.text for view in state.views]
        self._digest.update(repr(texts).encode())
        self._check_replay(seats, seed, options, moves, state)

    def _choose_move(self, number: int, state: HostedState, seat: Seat) -> HostedMove:
        """Return a random move, or in matches with an odd number that of a house bot: so all levels are tried, deep in matches."""
        levels = [*self._game.house_bots]
        if not levels or not number % 2:
            return self._chance.choice(list(self._rules.legal_moves(state, seat)))
        level, view = levels[number // 2 % len(levels)], state.views[seat]
        seed = sha256(f"{number}/{state.number}".encode()).digest()
        began_ns = process_time_ns()
        move = self._rules.choose_move(level, view, Chance(seed))
        took_ms = (process_time_ns() - began_ns) / 1e6
        if took_ms > self._game.free_ms:
            self._add_fault(
                f"the house bot {level} took {took_ms:.0f} ms for a move; free_ms is {self._game.free_ms}"
            )
        elif self._rules.choose_move(level, view, Chance(seed)) != move:
            self._add_fault(f"the house bot {level} chooses another move when it is asked again; all chance must come from `chance`")  # fmt: skip
        return move

    def _check_drawings(self, state: HostedState) -> None:
        """A drawing follows from the view alone: it must be the same after the game has seen another state."""
        if self._game.has_hook("draw"):
            self._check_hook("draw", state, lambda view: self._rules.draw_view(view, len(state.views) - 1))

    def _check_sentences(self, before: HostedState, seat: Seat, move: HostedMove, after: HostedState) -> None:
        if not self._game.has_hook("narrate") or after.number == before.number:
            return
        mover, known = (None, None) if before.is_joint else (seat, move.value)
        place = {view.seat: view for view in before.views}
        for told in (None, known):
            tell = partial(self._rules.narrate_step, move=told, mover=mover)
            self._check_hook("narrate", after, lambda view, tell=tell: tell(place[view.seat], after=view))  # type: ignore[misc]

    def _check_hook(self, hook: str, state: HostedState, ask: Callable[[HostedView], str]) -> None:
        first = list(map(ask, state.views))
        if self._game.can_resample():
            self._rules.is_changed_by_resampling(state)
        if list(map(ask, state.views)) != first:
            self._add_fault(
                f"{hook} gives another result for the same view; it must depend on its arguments alone"
            )

    def _draw_options(self, number: int) -> Options:
        """Return the defaults first, then other values of the options."""
        if number < len(self._rules.table_sizes):
            return self._rules.complete_options({})
        drawn: dict[str, int | str] = {}
        for name, option in self._game.options.items():
            values: Sequence[int | str] = option.values
            drawn[name] = self._chance.choice(values)
        return self._rules.complete_options(drawn)

    def _step(self, state: HostedState, seat: Seat, move: HostedMove) -> HostedState:
        after, *once = self._rules.run_timed(lambda: self._rules.play(state, seat, move))
        self._moves += 1
        method = "play_choices" if state.is_joint else "play_move"
        if self._rules.work_out_again(state) != state:
            self._add_fault(
                f"{method} changes the state that it is given, at the move {move.text[:60]}; return another one"
            )
        self._check_refusals(state, seat)
        if not self._game.can_list_all():
            self._check_unlisted(state, seat)
        again, *twice = self._rules.run_timed(lambda: self._rules.play(state, seat, move))
        self._note_times(once, twice)
        self._check_repeat(method, after, again)
        self._note_secrets(after)
        return after

    def _check_unlisted(self, state: HostedState, seat: Seat) -> None:
        """A game that cannot list its moves must allow those that it lists, and refuse or play any other JSON."""
        listed = state.views[seat].legal
        for text in listed[:_SOME_MOVES]:
            if why := self._rules.explain_refusal(state.own, seat, HostedMove(text)):
                self._add_fault(f"check_move refuses the move {text[:60]}, which list_moves lists: {why}")
        for text in (*_STRANGE_MOVES, f"[{listed[0]}]"):
            try:
                self._rules.play(state, seat, HostedMove(text))
            except IllegalMove:
                continue
            except GameFault as fault:
                told = str(fault).removeprefix(f"{self._rules.name}: ")
                self._add_fault(f"check_move allows the move {text[:60]}, and then {told}")

    def _check_refusals(self, state: HostedState, seat: Seat) -> None:
        """Nobody who is not asked can move, and no move that is not listed is played."""
        for other in map(Seat, range(len(state.views) - 1)):
            wrong = HostedMove('"no move of this game"')
            if other not in state.asked_seats:
                wrong = self._rules.default_move(state, seat)
            elif wrong.text in state.views[other].legal or state.views[other].has_more_moves:
                continue
            try:
                self._rules.play(state, other, wrong)
            except IllegalMove:
                continue
            self._add_fault(f"seat {other} may make the move {wrong.text[:60]}, which it must not")

    def _check_repeat(self, method: str, first: HostedState, second: HostedState) -> None:
        """The same step twice must give the same: no clock, no file, no `random`, no hidden memory."""
        if first != second:
            self._add_fault(
                f"{method} gives another result when it is called again with the same arguments; all chance must come "
                "from `chance`, and nothing may be remembered outside of the state"
            )

    def _check_replay(
        self, seats: int, seed: bytes, options: Options, moves: list[HostedMove], end: HostedState
    ) -> None:
        """A copy of the match from its record must end the same."""
        state = self._rules.deal(seats, seed, options)
        for move in moves:
            if state.asked is None or move.text not in state.views[state.asked].legal:
                break
            state = self._rules.play(state, state.asked, self._rules.move_from_json(move.value))
        if state != end:
            self._add_fault(
                "a match that is replayed from its moves ends otherwise, so its record would not verify"
            )

    def _check_time(self, times: list[_StepTime], most_ms: float, unit: str) -> None:
        """Name the method in which most of the time of the slowest steps passes."""
        slowest = sorted(times, key=lambda each: each.ns)[-_SLOW_RUNS:]
        slow_ms = sum(each.ns for each in slowest) / max(1, len(slowest)) / 1e6
        if slow_ms <= most_ms:
            return
        methods = sum((each.methods for each in slowest), Counter[str]())
        where = f", mostly in {methods.most_common(1)[0][0]}" if methods else ""
        self._add_fault(
            f"its slowest steps take {slow_ms:.0f} ms each {unit}{where}; more than {most_ms:.0f} ms are too slow"
        )

    def _note_times(self, once: Sequence[_StepTime], twice: Sequence[_StepTime]) -> None:
        """Note the shorter of two runs of a step by each clock, because a busy machine is no fault of the game."""
        for times, *runs in zip((self._cpu_times, self._wall_times), once, twice, strict=True):
            times.append(min(runs, key=lambda each: each.ns))


class _StepTime(NamedTuple):
    """The time of one step by one clock."""

    ns: int
    methods: Counter[str]
    """The nanoseconds in each method of the author."""


class _TimedRules(HostedRules):
    """The rules of a game that measure the methods of its author."""

    def __init__(self, game: HostedGame[Any], package: str) -> None:
        super().__init__(game, package)
        self._cpu_ns, self._wall_ns = Counter[str](), Counter[str]()

    def run_timed(self, step: Callable[[], HostedState]) -> tuple[HostedState, _StepTime, _StepTime]:
        """Run a step; return the state after it, its CPU time and its time by the clock."""
        self._cpu_ns, self._wall_ns = Counter[str](), Counter[str]()
        cpu_ns, wall_ns = process_time_ns(), perf_counter_ns()
        state = step()
        cpu_ns, wall_ns = process_time_ns() - cpu_ns, perf_counter_ns() - wall_ns
        return state, _StepTime(cpu_ns, self._cpu_ns), _StepTime(wall_ns, self._wall_ns)

    def _call(self, method: str, *arguments: Any) -> Any:
        cpu_ns, wall_ns = process_time_ns(), perf_counter_ns()
        found = super()._call(method, *arguments)
        self._cpu_ns[method] += process_time_ns() - cpu_ns
        self._wall_ns[method] += perf_counter_ns() - wall_ns
        return found


__all__ = ["GameReport", "check_game"]
