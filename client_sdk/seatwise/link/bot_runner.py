"""One bot object and where it thinks: coroutines in the loop, all else in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from inspect import isasyncgenfunction, isawaitable, iscoroutinefunction, isgenerator
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

from seatwise.bot import Bot, BotFactory, is_async, new_bot, question
from seatwise.bot_errors import BadAnswerError
from seatwise.building import Step, Steps
from seatwise.offer import Offer
from seatwise.result import Result
from seatwise.time_left import TimeLeft

_END: Final = object()
"""Of a generator in the thread."""

Job: TypeAlias = "tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]"


class BotRunner:
    """Calls the methods of one bot, one at a time."""

    def __init__(self, factory: BotFactory, offer: Offer) -> None:
        self._factory = factory
        self._offer = offer
        self._thread = BotThread(f"{offer.match}/{offer.seat}")
        self._bot: Bot | None = None

    async def make_bot(self) -> None:
        """Makes the bot and sets it up. Whatever the bot raises comes through, here and below."""
        if any(map(_is_async, (getattr(self._factory, name, None) for name in ("choose", "build")))):
            self._bot = new_bot(self._factory, self._offer)
        else:
            self._bot = await self._thread.call_function(new_bot, self._factory, self._offer)
        await self._call_method(self._bot.setup, self._offer)

    async def ask_bot(self, pace: str, view: Any, time: TimeLeft) -> Any:
        """The bot's move. A call that is cancelled runs on in its thread, and the next waits behind it."""
        bot = self._bot
        assert bot is not None
        bot.time = time
        with _refuse_exit():
            if is_async(bot, pace):
                return await question(bot, pace, view)
            move = await self._thread.call_function(question, bot, pace, view)
            return await move if isawaitable(move) else move

    async def run_generator(self, view: Any, time: TimeLeft) -> AsyncGenerator[Step, None]:
        """What the bot yields in a round, as it comes to it. Closed in time, it closes the bot's own generator."""
        bot = self._bot
        assert bot is not None
        bot.time = time
        steps = Steps(view)
        with _refuse_exit():
            async with aclosing(self._open_generator(bot, view)) as yielded:
                async for answer in yielded:
                    yield steps.read(answer)
                    await asyncio.sleep(0)  # so that a bot which awaits nothing does not hold up the link

    def _open_generator(self, bot: Bot, view: Any) -> AsyncGenerator[Any, None]:
        if isasyncgenfunction(bot.build):
            generator: AsyncGenerator[Any, None] = bot.build(view)
            return generator
        return self._iterate_in_thread(bot, view)

    async def _iterate_in_thread(self, bot: Bot, view: Any) -> AsyncGenerator[Any, None]:
        generator = await self._thread.call_function(bot.build, view)
        if not isgenerator(generator):
            raise BadAnswerError("build(view) must be a generator: yield layouts, and at last Call()")
        try:
            while (answer := await self._thread.call_function(next, generator, _END)) is not _END:
                yield answer
        finally:
            self._thread.post_function(generator.close)

    async def tell_end(self, result: Result) -> None:
        """Tells the bot how its match ended, if there is a bot yet."""
        if self._bot is not None:
            await self._call_method(self._bot.ended, result)

    def stop_thread(self) -> None:
        """The bot is needed no more."""
        self._thread.stop()

    async def _call_method(self, method: Callable[..., Any], *args: Any) -> None:
        with _refuse_exit():
            if iscoroutinefunction(method):
                await method(*args)
                return
            outcome = await self._thread.call_function(method, *args)
            if isawaitable(outcome):
                await outcome


def _is_async(function: object) -> bool:
    return iscoroutinefunction(function) or isasyncgenfunction(function)


@contextmanager
def _refuse_exit() -> Iterator[None]:
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

    async def call_function(self, function: Callable[..., Any], *args: Any) -> Any:
        """What the function returns, or raises, when called in the thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_jobs, name=self._name, daemon=True)
            self._thread.start()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put((future, function, args))
        value, error = await future
        if error is not None:
            raise error
        return value

    def post_function(self, function: Callable[[], Any]) -> None:
        """Calls it in the thread, after what was called before; nobody waits for it."""
        self._jobs.put((asyncio.get_running_loop().create_future(), function, ()))

    def stop(self) -> None:
        """Ends the thread, as soon as the bot lets it."""
        self._jobs.put(None)

    def _run_jobs(self) -> None:
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
            _settle_future(future, outcome)


def _settle_future(future: asyncio.Future[Any], outcome: tuple[Any, BaseException | None]) -> None:
    def settle() -> None:
        if not future.done():
            future.set_result(outcome)

    try:
        future.get_loop().call_soon_threadsafe(settle)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return
