"""The class from which every bot derives, and how a bot is checked, made and asked."""

from __future__ import annotations

import inspect
import random
from collections.abc import Awaitable, Callable
from types import GeneratorType
from typing import Any, TypeAlias

from seatwise.errors import UsageError
from seatwise.kits import DEFAULT_GAME, KITS, find_server_kit
from seatwise.kits.bot_methods import GameMethods
from seatwise.kits.game_kit import TurnMethod
from seatwise.offer import Offer, TimeLeft
from seatwise.result import Result
from seatwise_referee.game import Seat
from seatwise_referee.mixed_move import MixedMove


class Bot(GameMethods):
    """Derive from this class, and write the method of your game, such as `choose` or `build`.

    Each match has a bot object of its own. Every method may be `async`. A method that is not `async` runs in a
    thread, so that it may take its time; its clock runs meanwhile.

    If a method raises, the traceback is shown once and the bot plays on. An exception costs the bot this:

    - `setup`: its seat in this match. On a server the run ends if the first `setup` fails.
    - `choose` or `arrange`: this move. The referee plays the default move when the time runs out.
    - `build`: the rest of the round. The bot agrees to end the round, and its layout stays.
    - `ended`: nothing.

    Example:
        >>> class Highest(Bot):
        ...     def choose(self, view):
        ...         return max(view.legal_cards, key=lambda card: card.value)
    """

    name: str = ""
    """The bot's own name. Format: bots/{bot}/versions/{version}. It is set before `setup`, like all attributes below."""

    match: str = ""
    """The name of the match. Format: matches/{match}."""

    seat: Seat = Seat(0)
    """The bot's own seat, from 0. `view.seat` has the same value."""

    chance: random.Random = random.Random()
    """The source of random numbers for the bot. At a local table with a seed it gives the same numbers each time."""

    time: TimeLeft = TimeLeft(0, 0, 0, 0, 0)
    """The time left for the current question. At a local table no time runs out, and all fields stay 0."""

    def setup(self, offer: Offer) -> Any:
        """Prepare for the match: load models here. The SDK calls it once, before the bot sits down, and ignores what it returns.

        Args:
            offer: The facts of the match that are known before the deal. `offer.time_control.setup_ms` is the time
                limit, in milliseconds.
        """

    def ended(self, result: Result) -> Any:
        """Look at the result. The SDK calls it once, when the match is over, and ignores what it returns.

        Args:
            result: How the match ended, seen from this seat.
        """


BotFactory: TypeAlias = Callable[[], Bot]
"""Makes the bot object of each match: a class derived from `Bot`, or any function without arguments."""


def check_bot(factory: object, game: str = DEFAULT_GAME) -> BotFactory:
    """Check that bots of a game can be made from an object.

    Args:
        factory: The class of the bot, or a function that makes bots.
        game: The game that the bot is for, as in "ugo".

    Returns:
        The same object.

    Raises:
        UsageError: It makes no bots, or the bot lacks the method that the game needs. The message says what to write.
    """
    if isinstance(factory, Bot):
        name = type(factory).__name__
        raise UsageError(f"give the class {name}, not an object of it: each match is played by a new one")
    if not callable(factory):
        raise UsageError(f"{factory!r} is no bot: give a class derived from seatwise.Bot")
    if isinstance(factory, type):
        _check_class(factory, game)
    return factory


def _check_class(cls: type, game: str) -> None:
    if not issubclass(cls, Bot):
        raise UsageError(f"the class {cls.__name__} is no bot: write class {cls.__name__}(seatwise.Bot)")
    method = find_server_kit(game).main_method
    if not _has_method(cls, method):
        others = list(
            dict.fromkeys(
                f"; it has {kit.main_method}: is it for the game {other}?"
                for other, kit in KITS.items()
                if _has_method(cls, kit.main_method)
            )
        )
        raise UsageError(
            f"the bot {cls.__name__} has no method {method}(self, view), and must have one{''.join(others)}"
        )


def _has_method(cls: type[Bot], method: str) -> bool:
    return getattr(cls, method) is not getattr(Bot, method)


def new_bot(factory: BotFactory, offer: Offer, chance: random.Random | None = None) -> Bot:
    """Make the bot of one seat. An exception of its own `__init__` comes through."""
    bot = factory()
    if not isinstance(bot, Bot):
        raise UsageError(f"{factory!r} made {bot!r}, which is no seatwise.Bot")
    bot.name, bot.match, bot.seat = offer.bots[offer.seat], offer.match, offer.seat
    bot.chance = chance or random.Random()
    return bot


# A question, and the move that answers it


def is_async(bot: Bot, method: TurnMethod) -> bool:
    """Return whether this method is a coroutine. If not, call it in a thread."""
    return inspect.iscoroutinefunction(getattr(bot, method.name))


def is_awaitable(value: object) -> bool:
    """Return what `inspect.isawaitable` returns, in a third of its time for a value that is none (measured)."""
    return hasattr(value, "__await__") or (isinstance(value, GeneratorType) and inspect.isawaitable(value))


def ask_bot(bot: Bot, method: TurnMethod, view: Any) -> Any:
    """Ask the bot, and return its move, or an awaitable of it if the bot's method is `async`.

    An exception of the bot comes through. `BadAnswerError` means that its answer is no legal move.
    """
    answer = getattr(bot, method.name)(view)
    if is_awaitable(answer):
        return _await_answer(answer, method, view)
    return _read_answer(method, answer, view)


async def _await_answer(answer: Awaitable[Any], method: TurnMethod, view: Any) -> Any:
    return _read_answer(method, await answer, view)


def _read_answer(method: TurnMethod, answer: Any, view: Any) -> Any:
    if isinstance(answer, MixedMove):
        return MixedMove([(method.read_answer(choice, view), weight) for choice, weight in answer.choices])
    return method.read_answer(answer, view)
