"""The rules of a hosted game, as the referee plays them.

All code of the author runs inside `deal` and `play`: a step works out who is to move, the legal moves, every view and the
points, checks them, and keeps them in the state. So each other question to the rules is a look-up that cannot fail, and a
fault of the game is noticed before anything of its step is shown to a seat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from seatwise_referee.game import (
    BadOptions,
    IllegalMove,
    Json,
    Options,
    Outcome,
    Prompt,
    Seat,
    ranks_of,
)
from seatwise_referee.hosted.chance import Chance
from seatwise_referee.hosted.drawing import draw_any_view, encode_drawing
from seatwise_referee.hosted.hosted_game import LONGEST_GAME_NAME, GameFault, HostedGame, HostedOption
from seatwise_referee.hosted.payload import (
    LARGEST_NUMBER,
    LONGEST_HOSTED_VIEW,
    LONGEST_MOVE,
    HostedMove,
    HostedView,
    encode_payload,
)

MOVE_PACE: Final = "move"
"""The only pace of a hosted game."""

MOST_LEGAL_MOVES: Final = 10_000
MOST_SEATS: Final = 16
GAME_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")
OPTION_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
RESAMPLE_LABEL: Final = b"resample"
"""Goes before the deal seed where the referee draws hidden information again, so that no draw of the match is repeated."""

LONGEST_REFUSAL: Final = 200
"""The most characters of the sentence with which a game refuses a move, or tells of one."""

LONGEST_RULES: Final = 20_000
HOUSE_LEVEL: Final = re.compile(r"[a-z][a-z0-9-]{0,19}")
_MARKUP: Final = re.compile(r"<[a-zA-Z/!?][^<>]*>|!\[|\]\(\s*(?:javascript|data|vbscript):", re.IGNORECASE)
"""HTML, pictures and scripts in Markdown."""

UNREADABLE_MOVE: Final = "the game cannot read this move"
"""The sentence for a move at which `check_move` raises an exception."""

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class HostedState:
    """A state of a hosted game, and all that follows from it."""

    own: Any = field(compare=False, repr=False)
    """The state of the author's game."""

    seed: bytes = field(repr=False)
    """The seed of the deals, from which all chance follows."""

    draws: int
    number: int
    """The number of the question that is open, from 1; in a match that is over, of the one that would follow."""

    asked_seats: tuple[Seat, ...]
    """The seats that are still to move; empty when the match is over."""

    views: tuple[HostedView, ...]
    """By seat; the last one is a spectator's."""

    points: tuple[int, ...] | None
    """The points by seat, when the match is over."""

    is_joint: bool = False
    """Whether several seats choose at the same time."""

    choices: tuple[tuple[Seat, str], ...] = ()
    """The moves as canonical JSON of the seats that have chosen, while others have not. No view shows them."""

    @property
    def asked(self) -> Seat | None:
        """The first seat that is still to move; `None` when the match is over."""
        return self.asked_seats[0] if self.asked_seats else None


class HostedRules:
    """The rules of one hosted game: `seatwise_referee.game.Game` over the author's `HostedGame`."""

    def __init__(
        self, game: HostedGame[Any], package: str = "", load: Callable[[], HostedGame[Any]] | None = None
    ) -> None:
        """Check the facts of the game.

        Args:
            game: The author's game, or one with its facts alone.
            package: The name of the package that it comes from.
            load: Returns the author's game when its code is first needed, if `game` has its facts alone.

        Raises:
            GameFault: The facts are wrong.
        """
        self._game = game
        self._load = load
        self.package = package
        if fault := guard_call("a fact of the game", lambda: next(_find_faults(game), "")):
            raise GameFault(fault)
        self.name: str = game.name
        self.title: str = game.title or game.name
        version = str(game.rules_version)
        self.rules_version: str = f"{package}/{version}" if package else version
        self.table_sizes: range = game.table_sizes
        self.paces: Mapping[str, int] = {MOVE_PACE: game.free_ms}
        self.rules_text: str = game.rules
        """The rules for people, in Markdown; empty if there are none."""
        self.house_levels: tuple[str, ...] = tuple(game.house_bots)
        """The levels of house bots, the weakest first."""
        self._options: Mapping[str, HostedOption] = dict(game.options)

    @property
    def game(self) -> HostedGame[Any]:
        """The author's game. Raises `GameFault` if its code cannot be loaded."""
        if self._load is not None:
            self._game, self._load = self._load(), None
        return self._game

    # Options: declared by the author, and read without the author's code

    def complete_options(self, given: Options) -> Options:
        for name in given:
            if name not in self._options:
                known = ", ".join(self._options) or "none"
                raise BadOptions(f"{name}: {self.name} has no such option; there is {known}")
        return {name: _option_value(name, each, given) for name, each in self._options.items()}

    def deals_in_clear(self, seats: int, seed: bytes, options: Options) -> list[Json]:  # noqa: ARG002
        """Return nothing: verification works out each draw while it replays the match."""
        return []

    # Steps: the only places in which the author's code runs

    def deal(self, seats: int, seed: bytes, options: Options) -> HostedState:
        """See `Game`. Raises `GameFault`."""
        if seats not in self.table_sizes:
            raise BadOptions(f"{self.name} is not played by {seats}")
        return guard_call(f"{self.name}: a step", lambda: self._deal(seats, seed, options))

    def _deal(self, seats: int, seed: bytes, options: Options) -> HostedState:
        chance = Chance(seed)
        own = self._call("start_match", seats, dict(options), chance)
        return self._make_state(own, seats, seed, chance.draws, 1)

    def play(self, state: HostedState, seat: Seat, move: HostedMove) -> HostedState:
        """See `Game`. The move is looked up in the list of legal moves before `play_move` sees it.

        Where several seats choose at the same time, the author's code plays when the last one has chosen.
        """
        return guard_call(f"{self.name}: a step", lambda: self._play(state, seat, move))

    def check_choice(self, state: HostedState, seat: Seat, move: Any) -> None:
        """See `ChecksChoices`. A choice is one of the listed moves: to find out runs none of the author's code."""
        listed = state.views[seat].legal if seat in state.asked_seats else ()
        if not isinstance(move, HostedMove) or move.text not in listed:
            raise IllegalMove("a choice of a mixed move must be one of the legal moves that the view lists")

    def _play(self, state: HostedState, seat: Seat, move: HostedMove) -> HostedState:
        self._require_legal(state, seat, move)
        if state.number > self._game.most_moves:
            raise GameFault(f"{self.name}: the match has no end after {self._game.most_moves} moves")
        chance = Chance(state.seed, state.draws)
        if state.is_joint:
            choices = tuple(sorted((*state.choices, (seat, move.text))))
            if len(state.asked_seats) > 1:
                return _with_choices(state, choices)
            moves = {each: HostedMove(text).value for each, text in choices}
            own = self._call("play_choices", state.own, moves, chance)
        else:
            own = self._call("play_move", state.own, move.value, chance)
        return self._make_state(own, len(state.views) - 1, state.seed, chance.draws, state.number + 1)

    def _require_legal(self, state: HostedState, seat: Seat, move: HostedMove) -> None:
        if seat not in state.asked_seats:
            raise IllegalMove("this seat is not asked")
        view = state.views[seat]
        if isinstance(move, HostedMove) and move.text in view.legal:
            return
        if not isinstance(move, HostedMove) or not view.has_more_moves:
            raise IllegalMove("this is none of the legal moves that the view lists")
        why = self.explain_refusal(state.own, seat, move)
        if self.game.can_resample():
            chance = Chance(RESAMPLE_LABEL + state.seed, state.draws)
            other = self._call("resample_state", state.own, seat, chance)
            if self.explain_refusal(other, seat, move) != why:
                raise GameFault(f"{self.name}: check_move tells seat {seat} a secret")
        if why:
            raise IllegalMove(why)

    def explain_refusal(self, own: Any, seat: Seat, move: HostedMove) -> str:
        """Return why a game that cannot list its moves refuses this one, in a state of its own; empty if it is legal."""
        try:
            why = self._call("check_move", own, seat, move.value)
        except GameFault:
            # A bot chooses the move, and must not void the match by one that the author has not thought of.
            return UNREADABLE_MOVE
        if type(why) is not str:
            raise GameFault(f"{self.name}: check_move must return a text, which is empty for a legal move")
        return "".join(filter(str.isprintable, why))[:LONGEST_REFUSAL] if why else ""

    def work_out_again(self, state: HostedState) -> HostedState:
        """Return the state as the author's code describes it now. It differs if that code has changed the state."""
        found = self._make_state(state.own, len(state.views) - 1, state.seed, state.draws, state.number)
        return _with_choices(found, state.choices)

    def is_changed_by_resampling(self, state: HostedState) -> bool:
        """Return whether `resample_state` changes what any other seat is shown. Only for a game that can resample."""
        chance = Chance(RESAMPLE_LABEL + state.seed, state.draws)
        for view in state.views:
            own = self._call("resample_state", state.own, view.seat, chance)
            if any(self._show(own, other.seat) != other.text for other in state.views):
                return True
        return False

    def _make_state(self, own: Any, seats: int, seed: bytes, draws: int, number: int) -> HostedState:
        asked, is_joint = self._find_turn(own, seats)
        legal: dict[Seat | None, tuple[str, ...]] = {
            seat: self._list_moves(own, seat, is_joint) for seat in asked
        }
        has_more = not self.game.can_list_all()
        views = tuple(
            HostedView(seat, self._show(own, seat), legal.get(seat, ()), has_more and seat in asked)
            for seat in (*map(Seat, range(seats)), None)
        )
        self._check_secrets(own, (asked, is_joint), views, Chance(RESAMPLE_LABEL + seed, draws))
        points = None if asked else self._count_points(own, seats)
        return HostedState(own, seed, draws, number, asked, views, points, is_joint)

    def _find_turn(self, own: Any, seats: int) -> tuple[tuple[Seat, ...], bool]:
        """Return the seats that are asked, and whether they choose at the same time."""
        turn = self._call("find_turn", own)
        is_joint = type(turn) in (list, tuple)
        asked = list(turn) if is_joint else [] if turn is None else [turn]
        is_wrong = any(type(seat) is not int or not 0 <= seat < seats for seat in asked)
        if is_wrong or (is_joint and not asked) or len(set(asked)) < len(asked):
            told = guard_call("repr", lambda: repr(turn)[:60])
            raise GameFault(
                f"{self.name}: find_turn returned {told}; a seat is 0 to {seats - 1}, or None, or a list of seats"
            )
        return tuple(sorted(map(Seat, asked))), is_joint

    def _list_moves(self, own: Any, seat: Seat, is_joint: bool) -> tuple[str, ...]:
        method = "list_choices" if is_joint else "list_moves"
        listed = self._call(method, own, seat) if is_joint else self._call(method, own)
        if type(listed) not in (list, tuple) or not 0 < len(listed) <= MOST_LEGAL_MOVES:
            raise GameFault(
                f"{self.name}: {method} must return a list of 1 to {MOST_LEGAL_MOVES} moves while a seat is to move"
            )
        texts = tuple(self._encode(method, move, LONGEST_MOVE) for move in listed)
        if len(set(texts)) < len(texts):
            raise GameFault(f"{self.name}: {method} returned a move twice")
        return texts

    def _show(self, own: Any, seat: Seat | None) -> str:
        shown = self._call("show_state", own, seat)
        if type(shown) is not dict:
            raise GameFault(f"{self.name}: show_state must return a dict, not {type(shown).__name__}")
        return self._encode("show_state", shown, LONGEST_HOSTED_VIEW)

    def _count_points(self, own: Any, seats: int) -> tuple[int, ...]:
        points = self._call("count_points", own)
        is_list = type(points) in (list, tuple) and len(points) == seats
        if not is_list or any(type(each) is not int or abs(each) > LARGEST_NUMBER for each in points):
            raise GameFault(f"{self.name}: count_points must return {seats} whole numbers, one for each seat")
        return tuple(points)

    def _check_secrets(
        self, own: Any, turn: tuple[tuple[Seat, ...], bool], views: tuple[HostedView, ...], chance: Chance
    ) -> None:
        """Raise `GameFault` if a seat is shown something else in another state that it cannot tell from this one."""
        if not self._game.can_resample():
            return
        for view in views:
            other = self._call("resample_state", own, view.seat, chance)
            if self._show(other, view.seat) != view.text:
                self._require_same("show_state", self._show(own, view.seat), view.text)
                whom = "a spectator" if view.seat is None else f"seat {view.seat}"
                raise GameFault(
                    f"{self.name}: show_state shows {whom} a secret: it differs between two states that are the same to it"
                )
            if self._find_turn(other, len(views) - 1) != turn:
                self._require_same("find_turn", self._find_turn(own, len(views) - 1), turn)
                raise GameFault(
                    f"{self.name}: find_turn tells seat {view.seat} a secret, or resample_state changes what it knows: the turn "
                    "differs between two states that are the same to it"
                )
            if view.seat in turn[0] and self._list_moves(other, view.seat, turn[1]) != view.legal:
                method = "list_choices" if turn[1] else "list_moves"
                self._require_same(method, self._list_moves(own, view.seat, turn[1]), view.legal)
                raise GameFault(f"{self.name}: {method} tells seat {view.seat} a secret")

    def _require_same(self, method: str, again: object, before: object) -> None:
        """A method that answers differently each time leaks nothing by that: it has another fault."""
        if again != before:
            raise GameFault(
                f"{self.name}: {method} gives another result when it is called again with the same state"
            )

    def _encode(self, method: str, value: Any, longest: int) -> str:
        try:
            return encode_payload(value, longest)
        except ValueError as wrong:
            why = str(wrong)[:LONGEST_REFUSAL]
            raise GameFault(f"{self.name}: {method} returned a value that is no JSON here: {why}") from None

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call the author's code. Nothing that it raises comes through, not even what would end the process."""
        game = self.game
        return call_foreign(f"{self.name}: {method}", lambda: getattr(game, method)(*arguments))

    # Hooks: what people see, and house bots. They are given views, never a state, and no match depends on them

    def draw_view(self, view: HostedView, seats: int) -> str:
        """Return the drawing of a view as canonical JSON: the author's, or else that of any view. Raises `GameFault`."""
        if not self.game.has_hook("draw"):
            return encode_drawing(draw_any_view(view.data), seats)
        drawn = self._call("draw", view.data, view.seat)
        try:
            return guard_call(f"{self.name}: draw", lambda: encode_drawing(drawn, seats))
        except GameFault as fault:
            why = str(fault).rpartition("ValueError: ")[2]
            raise GameFault(f"{self.name}: draw returned no drawing: {why}") from None

    def narrate_step(self, before: HostedView, move: Json, mover: Seat | None, after: HostedView) -> str:
        """Return the author's sentence on a step; empty if there is none. Raises `GameFault`."""
        if not self.game.has_hook("narrate"):
            return ""
        said = self._call("narrate", before.data, move, mover, after.data)
        if type(said) is not str or len(said) > LONGEST_REFUSAL or not said.isprintable():
            raise GameFault(
                f"{self.name}: narrate must return one line of text of at most {LONGEST_REFUSAL} characters"
            )
        return said

    def choose_move(self, level: str, view: HostedView, chance: Chance) -> HostedMove:
        """Return the move of the author's house bot of this level. Raises `GameFault` if it is no legal move."""
        game = self.game
        chosen = call_foreign(
            f"{self.name}: the house bot {level}",
            lambda: game.house_bots[level](view.data, view.legal_moves, chance),
        )
        move = HostedMove(self._encode(f"the house bot {level}", chosen, LONGEST_MOVE))
        if move.text not in view.legal:
            raise GameFault(f"{self.name}: the house bot {level} chose {move.text[:60]}, which is not legal")
        return move

    # Questions: look-ups in the state

    def prompt(self, state: HostedState) -> Prompt | None:
        asked = state.asked_seats
        return Prompt(state.number, frozenset(asked), MOVE_PACE) if asked else None

    def legal_moves(self, state: HostedState, seat: Seat) -> Iterator[HostedMove]:
        return map(HostedMove, state.views[seat].legal)

    def default_move(self, state: HostedState, seat: Seat) -> HostedMove:
        """Return the first of the legal moves, as the author lists them."""
        if seat not in state.asked_seats:
            raise IllegalMove("this seat is not asked")
        return HostedMove(state.views[seat].legal[0])

    def view(self, state: HostedState, seat: Seat | None) -> HostedView:
        return state.views[-1 if seat is None else seat]

    def outcome(self, state: HostedState) -> Outcome | None:
        """See `Game`. More points are better, and equal points share a rank."""
        points = state.points
        return None if points is None else Outcome(points, ranks_of(points), (points,))

    def opened(self, state: HostedState) -> list[Json]:  # noqa: ARG002
        """Return nothing: the views of a hosted game show all that its rules open."""
        return []

    def move_to_json(self, move: HostedMove) -> Json:
        return move.value

    def move_from_json(self, json: Json) -> HostedMove:
        return HostedMove(encode_payload(json, LONGEST_MOVE))


def _with_choices(state: HostedState, choices: tuple[tuple[Seat, str], ...]) -> HostedState:
    """Return the state after these seats have chosen and others have not. A seat that has chosen is not asked again."""
    chosen = {seat for seat, _ in choices}
    return replace(
        state,
        choices=choices,
        asked_seats=tuple(seat for seat in state.asked_seats if seat not in chosen),
        views=tuple(
            replace(view, legal=(), has_more_moves=False) if view.seat in chosen else view
            for view in state.views
        ),
    )


def guard_call(what: str, call: Callable[[], ValueT]) -> ValueT:
    """Return what a call returns in which values of foreign code are handled. Their methods may raise anything.

    Raises `GameFault` instead, and passes on what the referee itself raises.
    """
    try:
        return call()
    except (IllegalMove, BadOptions, KeyboardInterrupt):
        raise
    except BaseException as error:
        if type(error) is GameFault:
            raise
        raise _fault_of(what, error) from error


def call_foreign(what: str, call: Callable[[], ValueT]) -> ValueT:
    """Return what foreign code returns. Raises `GameFault` for whatever it raises, an error of the referee included."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _fault_of(what, error) from error


def _fault_of(what: str, error: BaseException) -> GameFault:
    """Return the fault for an error. The text of the error is foreign code, too, and may raise anything."""
    try:
        what = f"{what} raised {type(error).__name__}"
        return GameFault(f"{what}: {str(error)[:LONGEST_REFUSAL]}")
    except BaseException:
        return GameFault(f"{what}, which has no text")


def _option_value(name: str, option: HostedOption, given: Options) -> int | str:
    value = given.get(name, option.default)
    if isinstance(option.values, range) and isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:LONGEST_GAME_NAME])
    if type(value) is bool or value not in option.values:
        raise BadOptions(
            f"{name}: must be {_told_values(option.values)}, not {str(value)[:LONGEST_GAME_NAME]!r}"
        )
    return value


def _told_values(values: range | tuple[str, ...]) -> str:
    if isinstance(values, range):
        return f"{values[0]} to {values[-1]}"
    return f"one of {', '.join(values)}"


# The facts of a game


def _find_faults(game: HostedGame[Any]) -> Iterator[str]:
    name = game.name
    if type(name) is not str or not GAME_NAME.fullmatch(name) or len(name) > LONGEST_GAME_NAME:
        yield (
            f"the name {name!r}: a game's name has lower-case letters, digits and hyphens, begins with a letter, and has at "
            f"most {LONGEST_GAME_NAME} characters"
        )
    sizes = game.table_sizes
    if type(sizes) is not range or not sizes or sizes.step != 1 or sizes[0] < 2 or sizes[-1] > MOST_SEATS:
        yield f"{name}: table_sizes is {sizes!r}; it must be a range within 2 to {MOST_SEATS} seats"
    for key in ("free_ms", "most_moves"):
        number = getattr(game, key)
        if type(number) is not int or number < 1:
            yield f"{name}: {key} is {number!r}; it must be a whole number from 1"
    if type(game.title) is not str or not game.title.isprintable():
        yield f"{name}: title is {game.title!r}; it must be a text that can be printed"
    if not isinstance(game.options, Mapping):
        yield f"{name}: options is a dict of HostedOption by name, not {type(game.options).__name__}"
    for key, option in game.options.items():
        yield from _find_option_faults(f"{name}: option {key!r}", key, option)
    rules, levels = game.rules, game.house_bots
    if type(rules) is not str or len(rules) > LONGEST_RULES or _MARKUP.search(rules):
        most = f"at most {LONGEST_RULES} characters"
        yield f"{name}: rules is Markdown without HTML, pictures and scripts, of {most}"
    is_level = HOUSE_LEVEL.fullmatch
    if not isinstance(levels, Mapping) or not all(type(each) is str and is_level(each) for each in levels):
        form = "lower-case letters, digits and hyphens"
        yield f"{name}: house_bots is a dict of functions by level, such as 'easy': {form}"


def _find_option_faults(where: str, key: object, option: object) -> Iterator[str]:
    if type(key) is not str or not OPTION_NAME.fullmatch(key):
        yield f"{where}: its name has lower-case letters, digits and underscores"
    if not isinstance(option, HostedOption):
        yield f"{where} is no HostedOption"
        return
    values, default = option.values, option.default
    is_texts = type(values) is tuple and all(type(each) is str for each in values)
    is_right = values and (is_texts or type(values) is range)
    if not is_right or type(default) not in (int, str) or default not in values:
        told = "`values` is a range or a tuple of texts, and contains the default, a whole number or a text"
        yield f"{where}: {told}"
