"""A game's kit: all that the SDK needs to know of a game, as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from seatwise.bot_errors import BadAnswerError
from seatwise_referee.game import RaceGame
from seatwise_referee.games.registry import GAMES

if TYPE_CHECKING:
    from seatwise.codec.game_codec import GameCodec


class StepReader(Protocol):
    """Reads what a bot yields in one round of a race."""

    def read_step(self, answer: object) -> Any:
        """Return the move, or the `Thought`. Raises `BadAnswerError` for anything else."""
        ...


@dataclass(frozen=True, slots=True)
class TurnMethod:
    """A method of a bot that answers a question with one move."""

    name: str
    """The name of the method, as in "choose"."""

    read_answer: Callable[[object, Any], Any]
    """Return the move for what the method returned, and the view. Raises `BadAnswerError` if it is no legal move."""


@dataclass(frozen=True, slots=True)
class RaceMethod:
    """A method of a bot that is a generator. It answers one question, a race, with many moves."""

    name: str
    """The name of the method, as in "build"."""

    new_reader: Callable[[Any], StepReader]
    """Make the reader of the steps of one round, from its view."""

    last_move: Any
    """The move for a bot that builds no more: it agrees to end the round."""

    usage: str
    """The values that the generator must yield, for an error message."""


BotMethod: TypeAlias = TurnMethod | RaceMethod


@dataclass(frozen=True, slots=True)
class GameKit:
    """All that the SDK needs to know of one game."""

    name: str
    """The name of the game in the referee's registry."""

    methods: Mapping[str, BotMethod]
    """By pace, the method that answers its questions. The first one is the method that every bot must have."""

    samples: Mapping[str, str]
    """The sample bots, the weakest first: by name, the class as "module:class"."""

    casual_queue: str
    """The queue in which a bot waits by default."""

    codec_module: str
    """The module whose `CODEC` is the game's codec."""

    @property
    def main_method(self) -> str:
        """The name of the method that every bot must have."""
        return next(iter(self.methods.values())).name

    @property
    def race_rules(self) -> RaceGame[Any, Any, Any]:
        """The rules of the game, for use in its races."""
        return cast("RaceGame[Any, Any, Any]", GAMES[self.name])

    def find_method(self, pace: str) -> BotMethod:
        """Return the method that answers questions of this pace. Raises `BadAnswerError` if there is none."""
        method = self.methods.get(pace)
        if method is None:
            raise BadAnswerError(f"this version of seatwise cannot ask a bot for {pace!r}; a newer one may")
        return method

    def load_codec(self) -> GameCodec:
        """Return the codec of the game. A program that plays without a server never loads it, nor protobuf."""
        codec: GameCodec = import_module(self.codec_module).CODEC
        return codec


def shorten(answer: object) -> str:
    """Return a short text of a bot's answer, for an error message."""
    text = repr(answer)
    return text if len(text) <= 60 else f"{text[:57]}..."
