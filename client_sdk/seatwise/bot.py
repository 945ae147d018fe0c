"""The class from which every bot derives; how a bot is checked, made and asked; and how its exceptions are shown."""

from __future__ import annotations

import inspect
import random
import re
import sys
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import GeneratorType, TracebackType
from typing import Any, TypeAlias

from seatwise.errors import BadAnswerError, UsageError
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
    """Return the same object, if it is the class of a bot for the game, or a function that makes bots.

    Raises `UsageError` if it makes no bots, or the bot lacks the method that the game needs. The message says what to write.
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
        others = (
            f"; it has {kit.main_method}: is it for the game {other}?"
            for other, kit in KITS.items()
            if _has_method(cls, kit.main_method)
        )
        told = f"the bot {cls.__name__} has no method {method}(self, view), and must have one"
        raise UsageError(f"{told}{''.join(others)}")


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


# A bot's own exceptions, shown to its author and kept away from everybody else

_SAMPLE = re.compile(r"[/\\]seatwise[/\\](kits[/\\]\w+[/\\])?samples\b(?![/\\]__init__)")
"""The place of the sample bots, which are shown as a bot of an author is; not what loads them."""
_ON_THE_WAY = (
    str(Path(__file__).parent),
    "client_sdk/seatwise/",  # what frames of compiled modules say
    str(Path(traceback.__file__).parent / "asyncio"),
    "<frozen importlib",
)
"""Frames of the traceback that come before the bot's own code."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A bot raised an exception, or its answer was no legal move."""

    bot: str
    """Its name at this table."""

    match: str
    seat: int
    doing: str
    """The call that failed: "choose", "arrange", "set up" and so on."""

    error: BaseException
    costs: str
    """The consequence for its match, for a person to read."""


class Failures:
    """Shows each kind of failure once, with its traceback, and counts the others."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str, str]] = Counter()
        """By bot, class of the exception and place."""

    def __call__(self, failure: Failure) -> None:
        """Show it, unless one of the same bot from the same place was shown before."""
        place = place_of(failure.error) or failure.doing
        key = failure.bot, type(failure.error).__name__, place
        self._seen[key] += 1
        if self._seen[key] == 1:
            self.show_failure(failure, place)

    def show_failure(self, failure: Failure, place: str) -> None:  # noqa: ARG002
        """Print it."""
        print(text_of(failure), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Say how often the same failures came again."""
        for (bot, kind, place), count in self._seen.items():
            if count > 1:
                print(f"{bot}: {kind} in {place}: {count - 1} more like it", file=sys.stderr, flush=True)


class NewFailures(Failures):
    """Collects the first failure of each kind, for a worker process that tells them to its parent."""

    def __init__(self) -> None:
        super().__init__()
        self._new: list[dict[str, str]] = []

    def show_failure(self, failure: Failure, place: str) -> None:
        """Keep it."""
        self._new.append({"bot": failure.bot, "place": place, "text": text_of(failure)})

    def take_new(self) -> list[dict[str, str]]:
        """Return what was noted since the last call: the bot, the place and the text of each."""
        new, self._new = self._new, []
        return new


def text_of(failure: Failure) -> str:
    """The failure with its traceback, from the bot's own code on."""
    where = f"{failure.match}, seat {failure.seat}, {failure.doing}"
    return f"{failure.bot} failed ({where}; {failure.costs}):\n{traceback_of(failure.error)}"


def traceback_of(error: BaseException) -> str:
    """The traceback, from the author's own code on; only the error where that is not in it."""
    if isinstance(error, BadAnswerError):
        return str(error)
    return "".join(traceback.format_exception(type(error), error, _own_part(error))).rstrip()


def _own_part(error: BaseException) -> TracebackType | None:
    """The traceback without the frames that lead to the bot; `None` if it never came so far."""
    own = error.__traceback__
    while own is not None and _is_on_the_way(own.tb_frame.f_code.co_filename):
        own = own.tb_next
    return own


def _is_on_the_way(file: str) -> bool:
    return file.startswith(_ON_THE_WAY) and not is_sample(file)


def is_sample(file: str) -> bool:
    """Return whether this is the code of a sample bot."""
    return _SAMPLE.search(file) is not None


def place_of(error: BaseException) -> str:
    """The last line that it came from; empty if that is not the author's."""
    frames = traceback.extract_tb(_own_part(error))
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
