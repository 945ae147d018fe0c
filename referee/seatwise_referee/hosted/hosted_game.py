"""The class from which the author of a game from outside derives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

from seatwise_referee.hosted.chance import Chance

HostedStateT = TypeVar("HostedStateT")

OptionValue: TypeAlias = "int | str"
LONGEST_GAME_NAME: Final = 40


class GameFault(Exception):
    """A game from outside has failed: it raised an exception, gave a wrong value, leaked a secret, or does not end.

    The match is voided as `GAME_FAULT`. The text is for the operator and the author. No bot is sent it.
    """


@dataclass(frozen=True, slots=True)
class HostedOption:
    """An option of a hosted game."""

    default: OptionValue
    """Its value where none is given."""

    values: range | tuple[str, ...]
    """The values that it may have: a range of whole numbers, or some texts."""


class HostedGame(Generic[HostedStateT]):
    """Derive from this class to host a game of your own: seats move in turns or at once, and chance draws between the moves.

    A state is any object of yours. Never change a state: `play_move` returns another one. Moves and views are JSON:
    texts, whole numbers, truth values, `None`, lists, and objects with text keys. No method may read a clock, a file
    or `random`: the same arguments must give the same result on every machine. All chance comes from `chance`.

    docs/examples/leduc/README.md explains it step by step, and `seatwise check-game NAME` tries a game out.
    """

    name: ClassVar[str] = ""
    """The name in URLs and records: lower-case letters, digits and hyphens, as in "leduc". It begins with a letter."""

    title: ClassVar[str] = ""
    """The name for people; empty means `name`."""

    rules_version: ClassVar[str] = "1"
    """The version of the rules. Change it whenever the same moves could lead to another result."""

    table_sizes: ClassVar[range] = range(2, 3)
    """How many seats a table may have: at least two. `range(2, 5)` means 2 to 4."""

    free_ms: ClassVar[int] = 1000
    """The default time for a move, in milliseconds."""

    most_moves: ClassVar[int] = 10_000
    """The most moves of a match. A match that goes on after them is voided."""

    options: ClassVar[Mapping[str, HostedOption]] = {}
    """The options of the game by name."""

    rules: ClassVar[str] = ""
    """The rules for people, in Markdown without HTML and pictures, at most 20,000 characters. A server shows them as a page."""

    house_bots: ClassVar[Mapping[str, Callable[[Any, list[Any], Chance], Any]]] = {}
    """Bots of rising strength by level, the weakest first: each chooses one of the legal moves, given the view of its seat."""

    def start_match(self, seats: int, options: Mapping[str, OptionValue], chance: Chance) -> HostedStateT:
        """Return the first state.

        Args:
            seats: The number of seats, one of `table_sizes`.
            options: The value of every option.
            chance: Makes all draws, such as a shuffled deck.
        """
        raise NotImplementedError

    def find_turn(self, state: HostedStateT) -> int | Sequence[int] | None:
        """Return the seat that is to move in this state, from 0; `None` when the match is over.

        Return a list of seats where several choose at the same time. No seat learns of another's choice before all have
        chosen; see `list_choices` and `play_choices`.
        """
        raise NotImplementedError

    def list_moves(self, state: HostedStateT) -> Sequence[Any]:
        """Return the legal moves of the seat that is to move in this state, each one once and always in the same order.

        The first one is played for a seat that does not answer in time. A game with too many moves lists some of them,
        at least one, and writes `check_move`.
        """
        raise NotImplementedError

    def list_choices(self, state: HostedStateT, seat: int) -> Sequence[Any]:  # noqa: ARG002
        """Return the legal moves of this seat in this state, where several seats choose at the same time.

        By default these are the moves of `list_moves`.
        """
        return self.list_moves(state)

    def check_move(self, state: HostedStateT, seat: int, move: Any) -> str:
        """Return why a move that is not listed is illegal for a seat in this state; empty if it is legal.

        The bot is told the text, so write a sentence. Write the method only if the game cannot list all legal moves. A bot may send any JSON: refuse all that `play_move` cannot play.
        The answer must not depend on anything that is hidden from the seat. An exception refuses the move.
        """
        raise NotImplementedError

    def play_move(self, state: HostedStateT, move: Any, chance: Chance) -> HostedStateT:
        """Return the state after a move.

        Args:
            state: The state. It must stay as it is.
            move: One of `list_moves(state)`, or a move that `check_move` allows. No other move ever comes here.
            chance: Makes the draws that follow the move.
        """
        raise NotImplementedError

    def play_choices(self, state: HostedStateT, moves: Mapping[int, Any], chance: Chance) -> HostedStateT:
        """Return the state after several seats have chosen at the same time.

        Args:
            state: The state. It must stay as it is.
            moves: The move of each seat that `find_turn` has listed, by seat.
            chance: Makes the draws that follow the moves.
        """
        raise NotImplementedError

    def show_state(self, state: HostedStateT, seat: int | None) -> Mapping[str, Any]:
        """Return all that a seat may know of this state, as a JSON object; `None` is a spectator.

        Nothing else is ever told to a bot except the legal moves on its turn. So the object must contain all that the
        bot needs, and no secret of another seat.
        """
        raise NotImplementedError

    def count_points(self, state: HostedStateT) -> Sequence[int]:
        """Return the points of each seat in the last state of a match: whole numbers, more is better."""
        raise NotImplementedError

    def resample_state(self, state: HostedStateT, seat: int | None, chance: Chance) -> HostedStateT:
        """Return another state that could be the true one for all that this seat knows. You need not write it.

        With it, `check_game` and the referee find leaks: in the other state the seat must be shown the same. Draw all
        that is hidden from the seat again, by `chance`. `None` is a spectator.
        """
        raise NotImplementedError

    # Hooks for pages. A hook is given views and no state, so it can tell nobody more than its view.

    def draw(self, view: Mapping[str, Any], seat: int | None) -> list[dict[str, Any]]:
        """Return the drawing of a view, for the page of a match. You need not write it.

        Args:
            view: The view of this seat, as `show_state` returned it.
            seat: The seat; `None` is a spectator.

        Returns:
            A list of items: zones of cards, counters, boards and texts, as docs/examples/leduc/README.md lists them.
        """
        raise NotImplementedError

    def narrate(
        self, before: Mapping[str, Any], move: Any, mover: int | None, after: Mapping[str, Any]
    ) -> str:
        """Return one sentence on a move, such as "{0} raises." with "{0}" for the name of seat 0. You need not write it.

        Args:
            before: The view of the audience before the move.
            move: The move; `None` where the audience may not know it, as in a match that is still played.
            mover: The seat that moved; `None` where several seats have chosen at once.
            after: Its view after the move.

        Returns:
            The sentence; empty for a plain one.
        """
        raise NotImplementedError

    @classmethod
    def has_hook(cls, name: str) -> bool:
        """Return whether the game has a hook of its own.

        Args:
            name: "draw" or "narrate".
        """
        return getattr(cls, name) is not getattr(HostedGame, name)

    @classmethod
    def can_resample(cls) -> bool:
        """Return whether the game has a `resample_state` of its own."""
        return cls.resample_state is not HostedGame.resample_state

    @classmethod
    def can_list_all(cls) -> bool:
        """Return whether the game lists all legal moves: it has no `check_move` of its own."""
        return cls.check_move is HostedGame.check_move
