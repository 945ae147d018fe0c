"""What a game must offer to be hosted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol, TypeAlias, TypeVar

Seat = NewType("Seat", int)
"""A place at the table, counted from 0, clockwise."""

Json: TypeAlias = "None | bool | int | str | list[Json] | dict[str, Json]"
"""What journals and records are made of: no floats, so that every language writes the same bytes."""

Options: TypeAlias = Mapping[str, "int | str"]
"""A game's options by name, complete: `Game.options` has filled in the defaults."""

StateT = TypeVar("StateT")
MoveT = TypeVar("MoveT")
ViewT = TypeVar("ViewT", covariant=True)


class IllegalMove(ValueError):
    """The move is against the rules; the state is as it was.

    The text goes to the bot that moved, so it names only what that seat's own view shows.
    """


class BadOptions(ValueError):
    """A game's options or table size cannot be played; the text says what would be right."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question put to one seat, or to several at once.

    Clocks start when the number changes. A move names the number it answers, so that a late
    answer to an old question is told apart from a wrong answer.
    """

    number: int
    """Rises with each new question, from 1; a seat may move many times within one."""

    seats: frozenset[Seat]
    """Those who may move now: one is a turn, several are simultaneous or a race."""

    pace: str
    """Which limit of the time control applies: "card", "arrange" or "build"."""

    race: bool = False
    """Commands reach the game in order of charged time, not of arrival."""

    fault: bool = True
    """Whether running out of time is a strike."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a game, as the rules see it."""

    points: tuple[int, ...]
    """By seat."""

    ranks: tuple[int, ...]
    """By seat: 1 + the number of seats that did better, which share a rank if they are equal. More points are
    better; what breaks a tie the game says: nothing in UGO!, in Ubongo more rounds with 10 points (K15).
    """

    rounds: tuple[tuple[int, ...], ...]
    """Points of each round, by seat."""


def ranks_of(points: tuple[int, ...]) -> tuple[int, ...]:
    """1 + the number of seats with more points, by seat."""
    return tuple(1 + sum(other > own for other in points) for own in points)


class Game(Protocol[StateT, MoveT, ViewT]):
    """The rules of one game: pure functions over a frozen, hashable state.

    Nothing here reads a clock, draws a random number or knows of a network. All chance comes from
    the seed that `deal` puts into the state; all passing of time arrives through `expire`.
    """

    @property
    def name(self) -> str:
        """As in URLs and records: "ugo"."""
        ...

    @property
    def rules_version(self) -> str:
        """Stands in every record; a change of the rules is a new version, or a new game."""
        ...

    @property
    def table_sizes(self) -> range:
        """How many seats a table may have."""
        ...

    @property
    def paces(self) -> Mapping[str, int]:
        """The default free time of each pace, in milliseconds."""
        ...

    def options(self, given: Options) -> Options:
        """The given options with the defaults filled in, or `BadOptions`."""
        ...

    def deal(self, seats: int, seed: bytes, options: Options) -> StateT:
        """The first state; the same arguments give the same state for ever."""
        ...

    def deals(self, seats: int, seed: bytes, options: Options) -> list[Json]:
        """All that chance decides in the whole match, in clear, for the record."""
        ...

    def prompt(self, state: StateT) -> Prompt | None:
        """The question now on the table; `None` when the game is over."""
        ...

    def legal_moves(self, state: StateT, seat: Seat) -> Iterator[MoveT]:
        """Lazily, in a fixed order; nothing for a seat that is not asked."""
        ...

    def play(self, state: StateT, seat: Seat, move: MoveT) -> StateT:
        """The state after the move, or `IllegalMove`."""
        ...

    def default_move(self, state: StateT, seat: Seat) -> MoveT:
        """What the referee plays for an asked seat that gives no answer: a published rule."""
        ...

    def expire(self, state: StateT, seats: frozenset[Seat]) -> StateT:
        """The state after the time of these asked seats has run out."""
        ...

    def view(self, state: StateT, seat: Seat | None) -> ViewT:
        """All that a seat may know; `None` is a spectator. The only way out of a state."""
        ...

    def outcome(self, state: StateT) -> Outcome | None:
        """`None` while the game goes on."""
        ...

    def move_to_json(self, move: MoveT) -> Json:
        """The move as journals and records write it."""
        ...

    def move_from_json(self, json: Json) -> MoveT:
        """The inverse; `ValueError` for what is no move of this game."""
        ...


class RaceGame(Game[StateT, MoveT, ViewT], Protocol):
    """A game in which all build at once: its prompts are races.

    What lies before a seat reaches the journal only when it counts: an entry that decides something
    carries it for every seat.
    """

    def is_lay(self, move: MoveT) -> bool:
        """Whether the move lays something; neither it nor an offer is acknowledged or journaled."""
        ...

    def is_offer(self, move: MoveT) -> bool:
        """Whether the move agrees to end the round, or takes that back."""
        ...

    def is_call(self, move: MoveT) -> bool:
        """Whether the move is a call, which is ordered by what it is charged."""
        ...

    def layouts(self, state: StateT) -> list[Json]:
        """What lies before each seat, by seat, as journals and records write it."""
        ...

    def with_layouts(self, state: StateT, layouts: Sequence[Json]) -> StateT:
        """The inverse, on the state without them; `IllegalMove` for what cannot lie, `ValueError` for junk."""
        ...

    def call_together(self, state: StateT, callers: frozenset[Seat]) -> StateT:
        """The state after these seats have called at the same time, or `IllegalMove`."""
        ...

    def agree(self, state: StateT) -> StateT:
        """The state after all have agreed to end the round, or its time has run out."""
        ...
