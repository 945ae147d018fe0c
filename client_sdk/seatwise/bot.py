"""What a bot is: the class to derive from, and how a question becomes a move."""

from __future__ import annotations

import inspect
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from seatwise.bot_errors import BadAnswerError, UsageError
from seatwise.offer import Offer
from seatwise.result import Result
from seatwise.time_left import TimeLeft
from seatwise_referee.game import Seat
from seatwise_referee.games import ubongo
from seatwise_referee.games.ugo import Arrange, Card, Move, Play, View, default_order


class Bot:
    """Derive from it and write `choose` for UGO!, `build` for Ubongo. Each match has an object of its own.

    Every method may be `async`. One that is not runs in a thread, so it may take its time; the clock
    runs meanwhile.
    """

    name: str = ""
    """Who it plays as. Format: bots/{bot}/versions/{version}. Set before `setup`, as all that follows."""

    match: str = ""
    """Format: matches/{match}."""

    seat: Seat = Seat(0)
    """Its own, from 0; `view.seat` says the same."""

    chance: random.Random = random.Random()
    """Draw from here what is left to chance: at a local table with a seed it is the same each time."""

    time: TimeLeft = TimeLeft(0, 0, 0, 0, 0)
    """The time for the question that is put; at a local table nobody's time runs out, and it stays nought."""

    def setup(self, offer: Offer) -> Any:
        """Called before the bot first sits down: load models here. `offer.time_control.setup_ms` is the time."""

    def choose(self, view: View) -> Any:
        """A card is to be played: return one of `view.legal_cards`."""
        raise NotImplementedError(f"{type(self).__name__} has no method choose(self, view)")

    def arrange(self, view: View) -> Any:
        """The won cards are to be laid: return `view.won_cards` in the order in which they are laid.

        Each goes on its colour's stack, or opens the next free section from the left. Asked only where
        two orders differ. If not overridden, the highest goes on top, and first the colour with the
        highest top.
        """
        return default_order(view.won_cards)

    def build(self, view: ubongo.View) -> Any:
        """In Ubongo, once a round: yield layouts as you find them, and at last `Call()`.

        Write a generator, `async` or not; a layout is what is to lie now, in all. `OfferEnd(True)` agrees
        to end the round; so does coming to the end without a call. When the round is over the generator is
        closed. An `async` one must let the loop go on: await something now and then.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method build(self, view)")

    def ended(self, result: Result) -> Any:
        """Called when the match is over."""


BotFactory: TypeAlias = Callable[[], Bot]
"""What makes a bot for each match: its class, or any function without arguments."""


def check_bot(factory: object, game: str = "ugo") -> BotFactory:
    """The same object, if bots of that game can be made of it; otherwise `UsageError`."""
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
    method = _MAIN.get(game, "choose")
    if not _has(cls, method):
        others = [
            f"; it has {own}: is it for the game {other}?" for other, own in _MAIN.items() if _has(cls, own)
        ]
        raise UsageError(
            f"the bot {cls.__name__} has no method {method}(self, view), and must have one{''.join(others)}"
        )


def _has(cls: type[Bot], method: str) -> bool:
    return getattr(cls, method) is not getattr(Bot, method)


def new_bot(factory: BotFactory, offer: Offer, chance: random.Random | None = None) -> Bot:
    """A bot for that seat. Whatever its own `__init__` raises comes through."""
    bot = factory()
    if not isinstance(bot, Bot):
        raise UsageError(f"{factory!r} made {bot!r}, which is no seatwise.Bot")
    bot.name, bot.match, bot.seat = offer.bots[offer.seat], offer.match, offer.seat
    bot.chance = chance or random.Random()
    return bot


# A question, and the move that answers it


def is_async(bot: Bot, pace: str) -> bool:
    """Whether the method that answers questions of this pace is a coroutine; if not, ask in a thread."""
    return inspect.iscoroutinefunction(_method(bot, pace))


def question(bot: Bot, pace: str, view: Any) -> Any:
    """The move with which the bot answers; awaitable if the bot's method is. `BadAnswerError` if it is none.

    Whatever the bot itself raises comes through.
    """
    answer = _method(bot, pace)(view)
    if inspect.isawaitable(answer):
        return _awaited(answer, pace, view)
    return _READERS[pace](answer, view)


async def _awaited(answer: Awaitable[Any], pace: str, view: Any) -> Move:
    return _READERS[pace](await answer, view)


def method_name(pace: str) -> str:
    """The method that answers questions of this pace."""
    name = _METHODS.get(pace)
    if name is None:
        raise BadAnswerError(f"this version of seatwise cannot ask a bot for {pace!r}; a newer one may")
    return name


def _method(bot: Bot, pace: str) -> Callable[[Any], Any]:
    method: Callable[[Any], Any] = getattr(bot, method_name(pace))
    return method


def _read_card(answer: object, view: View) -> Move:
    where = "choose(view) must return one of view.legal_cards, here " + _listed(view.legal_cards)
    card = _card(answer.card if isinstance(answer, Play) else answer, where)
    if card not in view.legal_cards:
        raise BadAnswerError(f"{card} may not be played here: {where}")
    return Play(card)


def _read_laying(answer: object, view: View) -> Move:
    where = "arrange(view) must return each of view.won_cards once, here " + _listed(view.won_cards)
    given = answer.cards if isinstance(answer, Arrange) else answer
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadAnswerError(f"{_shown(given)} is no list of cards: {where}")
    cards = tuple(_card(each, where) for each in given)
    if sorted(cards) != sorted(view.won_cards):
        raise BadAnswerError(f"{_listed(cards) or 'nothing'} was returned: {where}")
    return Arrange(cards)


def _card(answer: object, where: str) -> Card:
    if isinstance(answer, Card):
        return answer
    if not isinstance(answer, str):
        raise BadAnswerError(f"{_shown(answer)} is no card: {where}")
    try:
        return Card.parse(answer)
    except ValueError as error:
        raise BadAnswerError(f"{error}. {where}") from None


def _shown(answer: object) -> str:
    text = repr(answer)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _listed(cards: Iterable[Card]) -> str:
    return ", ".join(map(str, cards))


_MAIN: Mapping[str, str] = {"ugo": "choose", "ubongo": "build"}
"""By game, what a bot cannot do without."""
_METHODS: Mapping[str, str] = {"card": "choose", "arrange": "arrange", "build": "build"}
_READERS: Mapping[str, Callable[[Any, Any], Move]] = {"card": _read_card, "arrange": _read_laying}
