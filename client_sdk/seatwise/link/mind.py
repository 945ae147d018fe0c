"""One bot object and where it thinks: coroutines in the loop, all else in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import isawaitable, iscoroutinefunction
from queue import SimpleQueue
from typing import Any, TypeAlias

from seatwise.bot import Bot, BotFactory, is_async, new_bot, question
from seatwise.offer import Offer
from seatwise.result import Result
from seatwise.time_left import TimeLeft

Job: TypeAlias = "tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]"


class Mind:
    """Calls the methods of one bot, one at a time."""

    def __init__(self, factory: BotFactory, offer: Offer) -> None:
        self._factory = factory
        self._offer = offer
        self._thread = BotThread(f"{offer.match}/{offer.seat}")
        self._bot: Bot | None = None

    async def make(self) -> None:
        """Makes the bot and sets it up. Whatever the bot raises comes through, here and below."""
        if iscoroutinefunction(getattr(self._factory, "choose", None)):
            self._bot = new_bot(self._factory, self._offer)
        else:
            self._bot = await self._thread.call(new_bot, self._factory, self._offer)
        await self._call(self._bot.setup, self._offer)

    async def answer(self, pace: str, view: Any, time: TimeLeft) -> Any:
        """The bot's move. A call that is cancelled runs on in its thread, and the next waits behind it."""
        bot = self._bot
        assert bot is not None
        bot.time = time
        with _process_kept():
            if is_async(bot, pace):
                return await question(bot, pace, view)
            move = await self._thread.call(question, bot, pace, view)
            return await move if isawaitable(move) else move

    async def tell_end(self, result: Result) -> None:
        """Tells the bot how its match ended, if there is a bot yet."""
        if self._bot is not None:
            await self._call(self._bot.ended, result)

    def close(self) -> None:
        """The bot is needed no more."""
        self._thread.close()

    async def _call(self, method: Callable[..., Any], *args: Any) -> None:
        with _process_kept():
            if iscoroutinefunction(method):
                await method(*args)
                return
            outcome = await self._thread.call(method, *args)
            if isawaitable(outcome):
                await outcome


@contextmanager
def _process_kept() -> Iterator[None]:
    """A bot that calls sys.exit() fails; its process has other matches to play."""
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(f"the bot called for the end of the process: {error!r}") from error


class BotThread:
    """A thread for one bot, so that what the bot keeps in it (a connection, a session) stays there.

    It is a daemon: a bot that never comes back must not keep the process from ending. It starts with
    the first call; a bot of coroutines has none.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """What the function returns, or raises, when called in the thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put((future, function, args))
        value, error = await future
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Ends the thread, as soon as the bot lets it."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, function, args = job
            if future.cancelled():  # it was not wanted any more before it could begin
                continue
            # An exception goes as a value: a future refuses to carry StopIteration.
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = function(*args), None
            except (Exception, SystemExit) as error:
                outcome = None, error
            _settle(future, outcome)


def _settle(future: asyncio.Future[Any], outcome: tuple[Any, BaseException | None]) -> None:
    def settle() -> None:
        if not future.done():
            future.set_result(outcome)

    try:
        future.get_loop().call_soon_threadsafe(settle)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return
