"""The `Game` protocol, which every hosted game satisfies, and the values that it exchanges.

A game is a set of pure functions over states. It has no clock. A prompt says which seats may move and at which
pace, and the referee measures the time. When the time is over, the referee plays the `default_move` of the game;
in a race it calls `end_round`. So every match ends, and a replay of its moves needs nothing but the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NewType, Protocol, TypeAlias, TypeVar, runtime_checkable

Seat = NewType("Seat", int)
"""A place at the table: counted from 0, clockwise."""

Json: TypeAlias = "None | bool | int | str | list[Json] | dict[str, Json]"
"""The values in journals and records. There are no floats, so that every language writes the same bytes."""

Options: TypeAlias = Mapping[str, "int | str"]
"""A game's options by name, complete: `Game.options` has filled in the defaults."""

StateT = TypeVar("StateT")
MoveT = TypeVar("MoveT")
ViewT = TypeVar("ViewT", covariant=True)
StateInT = TypeVar("StateInT", contravariant=True)
MoveOutT = TypeVar("MoveOutT", covariant=True)


class IllegalMove(ValueError):
    """The move is against the rules, and the state is as it was.

    The bot that moved is sent the text, so the text names only what the view of its seat shows.
    """


class BadOptions(ValueError):
    """The game cannot be played with these options or so many seats. The text says what would be right."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question to one seat, or to several at once.

    Clocks start when the number changes. A move names the number that it answers. So a late answer to an
    old prompt is distinguished from a wrong answer.
    """

    number: int
    """Counts the prompts of a match from 1. In a race a seat moves many times within one prompt."""

    seats: frozenset[Seat]
    """The seats that may move now: one seat in a turn, several in a race or a simultaneous move."""

    pace: str
    """Which free time of the time control applies, for example "card", "arrange" or "build"."""

    race: bool = False
    """Whether calls count in the order of their charged time instead of their arrival. Only for a `RaceGame`."""

    fault: bool = True
    """Whether a time-out is a strike."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a game according to its rules."""

    points: tuple[int, ...]
    """By seat."""

    ranks: tuple[int, ...]
    """By seat: 1 + the number of seats that did better, so equal seats share a rank.

    More points are better. The game says what breaks a tie: nothing in UGO!, in Ubongo more rounds with
    10 points (K15).
    """

    rounds: tuple[tuple[int, ...], ...]
    """The points of each round, by seat."""


def ranks_of(points: tuple[int, ...]) -> tuple[int, ...]:
    """Return the rank of each seat: 1 + the number of seats with more points.

    >>> ranks_of((7, 12, 7))
    (2, 1, 2)
    """
    return tuple(1 + sum(other > own for other in points) for own in points)


class Game(Protocol[StateT, MoveT, ViewT]):
    """The rules of one game: pure functions over a frozen, hashable state.

    No method reads a clock, draws a random number or knows a network. All chance follows from the seed that
    `deal` takes. A state never changes: `play` returns another one. A game in which all seats build at once is
    a `RaceGame`. A game that can list legal moves is `ListsLegalMoves`, too.

    The arguments are the same in all methods:

    Args:
        state: A state that `deal` or `play` returned.
        seat: A seat of this table, from 0.
        move: A move of this game. Only `play` may be given anything else; it raises `IllegalMove`.
        seats: How many seats the table has, one of `table_sizes`.
        seed: 32 bytes, from which all chance follows.
        options: Options by name, as `complete_options` returned them.
    """

    @property
    def name(self) -> str:
        """The name in URLs and records, for example "ugo"."""

    @property
    def rules_version(self) -> str:
        """The version of the rules, as every record names it. Changed rules need another version."""

    @property
    def table_sizes(self) -> range:
        """How many seats a table may have."""

    @property
    def paces(self) -> Mapping[str, int]:
        """The default free time of each pace, in milliseconds."""

    def complete_options(self, given: Options) -> Options:
        """Return the given options with the defaults of those that are missing.

        Raises `BadOptions` for an option that the game does not have, or a value that it cannot be played with.
        """

    def deal(self, seats: int, seed: bytes, options: Options) -> StateT:
        """Return the first state. The same arguments always give the same state, as long as `rules_version` is the same.

        Raises `BadOptions` for another number of seats than `table_sizes` has.
        """

    def deals_in_clear(self, seats: int, seed: bytes, options: Options) -> list[Json]:
        """Return all that chance decides in the whole match, in clear, for the record.

        The referee publishes it only when the match is over.
        """

    def prompt(self, state: StateT) -> Prompt | None:
        """Return the question that is open in this state; `None` when the game is over."""

    def play(self, state: StateT, seat: Seat, move: MoveT) -> StateT:
        """Return the state after the move of this seat.

        Raises `IllegalMove` if the seat is not asked, if the rules forbid the move, or if it is no move at all.
        """

    def default_move(self, state: StateT, seat: Seat) -> MoveT:
        """Return what the referee plays for a seat that is asked and gives no answer.

        The rule for it is published, and the move is legal. Raises `IllegalMove` if the seat is not asked.
        """

    def view(self, state: StateT, seat: Seat | None) -> ViewT:
        """Return all that a seat may know; `None` is a spectator. This is the only way out of a state."""

    def opened(self, state: StateT) -> list[Json]:
        """Return the hands that the rules have opened last: of the finished rounds whose cards are out of play.

        Every spectator may see them, and nothing in them may help a seat. Each item is a round, with the keys
        "round" and "hands" (by seat, as records write cards) of `deals_in_clear`, and others that a reader of the
        hands needs. The list is empty as long as no cards are out of play.
        """

    def outcome(self, state: StateT) -> Outcome | None:
        """Return the end of the game; `None` while it goes on."""

    def move_to_json(self, move: MoveT) -> Json:
        """Return the move as journals and records write it."""

    def move_from_json(self, json: Json) -> MoveT:
        """Return the move that `move_to_json` wrote as this JSON. Raises `ValueError` for JSON that is no move of this game."""


@runtime_checkable
class ListsLegalMoves(Protocol[StateInT, MoveOutT]):
    """A game that can list the moves of a seat; a game need not be able to.

    The referee never lists moves: it asks `Game.play` whether one is legal. Lists are for tools and tests,
    which check a game with random matches. `isinstance(game, ListsLegalMoves)` tells whether there are any.
    """

    def legal_moves(self, state: StateInT, seat: Seat) -> Iterator[MoveOutT]:
        """Yield legal moves of this seat in this state, in a fixed order; none for a seat that is not asked.

        Where there are too many to list, these are some of them, likely ones first.
        """


@runtime_checkable
class ChecksChoices(Protocol[StateInT]):
    """A game whose moves may take long to play. It checks the choices of a mixed move without playing them.

    The referee plays each choice of any other game, to see whether it is legal.
    """

    def check_choice(self, state: StateInT, seat: Seat, move: Any) -> None:
        """Raise `IllegalMove` unless this seat may have the move among its choices in this state."""


@runtime_checkable
class RaceGame(Game[StateT, MoveT, ViewT], Protocol):
    """A game in which all build at once: its prompts are races.

    Layouts reach the journal only when they count: the entry that decides something carries the layout of
    every seat.
    """

    def is_lay(self, move: MoveT) -> bool:
        """Return whether the move lays something. Such a move is neither acknowledged nor journaled."""

    def is_offer(self, move: MoveT) -> bool:
        """Return whether the move agrees to end the round, or withdraws that. It is treated like a layout."""

    def is_call(self, move: MoveT) -> bool:
        """Return whether the move is a call. Calls count in the order of their charged time."""

    def layouts(self, state: StateT) -> list[Json]:
        """Return what lies before each seat in this state, by seat, as journals and records write it."""

    def with_layouts(self, state: StateT, layouts: Sequence[Json]) -> StateT:
        """Return the state with these layouts instead of its own: the inverse of `layouts`.

        Raises `IllegalMove` for a layout that cannot lie so, and `ValueError` for JSON that is no layout.
        """

    def call_together(self, state: StateT, callers: frozenset[Seat]) -> StateT:
        """Return the state after these seats, the callers, have called at the same time.

        Raises `IllegalMove` if one of them cannot call.
        """

    def end_round(self, state: StateT) -> StateT:
        """Return the state after the round has ended without a call: all agreed, or its time is over."""
