"""Runs the methods of one bot object: coroutines in the event loop, and all others in a thread of the bot's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from inspect import isasyncgenfunction, isawaitable, iscoroutinefunction, isgenerator
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

from seatwise.bot import Bot, BotFactory, ask_bot, is_async, new_bot
from seatwise.bot_errors import BadAnswerError
from seatwise.kits.game_kit import GameKit, RaceMethod, TurnMethod
from seatwise.offer import Offer
from seatwise.result import Result
from seatwise.time_left import TimeLeft

_NO_ANSWER: Final = object()
"""Marks the end of a generator in the thread."""

Job: TypeAlias = "tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]"


class BotRunner:
    """Calls the methods of one bot, one at a time."""

    def __init__(self, factory: BotFactory, offer: Offer, kit: GameKit) -> None:
        self._factory = factory
        self._offer = offer
        self._kit = kit
        self._thread = BotThread(f"{offer.match}/{offer.seat}")
        self._bot: Bot | None = None

    async def make_bot(self) -> None:
        """Make the bot and set it up. Exceptions of the bot come through, as in all methods here."""
        if _is_async(getattr(self._factory, self._kit.main_method, None)):
            self._bot = new_bot(self._factory, self._offer)
        else:
            self._bot = await self._thread.call_function(new_bot, self._factory, self._offer)
        await self._call_method(self._bot.setup, self._offer)

    async def ask_bot(self, method: TurnMethod, view: Any, time: TimeLeft) -> Any:
        """Return the bot's move. If this is cancelled, the bot's method runs on in its thread, and the next call waits for it."""
        bot = self._bot
        assert bot is not None
        bot.time = time
        with _refuse_exit():
            if is_async(bot, method):
                return await ask_bot(bot, method, view)
            move = await self._thread.call_function(ask_bot, bot, method, view)
            return await move if isawaitable(move) else move

    async def run_generator(self, method: RaceMethod, view: Any, time: TimeLeft) -> AsyncGenerator[Any, None]:
        """Yield the moves and thoughts that the bot yields in one round. When this is closed, the bot's generator is closed too."""
        bot = self._bot
        assert bot is not None
        bot.time = time
        reader = method.new_reader(view)
        with _refuse_exit():
            async with aclosing(self._open_generator(bot, method, view)) as yielded:
                async for answer in yielded:
                    yield reader.read_step(answer)
                    await asyncio.sleep(0)  # so that a bot which awaits nothing does not block the event loop

    def _open_generator(self, bot: Bot, method: RaceMethod, view: Any) -> AsyncGenerator[Any, None]:
        build = getattr(bot, method.name)
        if isasyncgenfunction(build):
            generator: AsyncGenerator[Any, None] = build(view)
            return generator
        return self._iterate_in_thread(build, method, view)

    async def _iterate_in_thread(
        self, build: Callable[[Any], Any], method: RaceMethod, view: Any
    ) -> AsyncGenerator[Any, None]:
        generator = await self._thread.call_function(build, view)
        if not isgenerator(generator):
            raise BadAnswerError(f"{method.name}(view) must be a generator: {method.usage}")
        try:
            while (answer := await self._thread.call_function(next, generator, _NO_ANSWER)) is not _NO_ANSWER:
                yield answer
        finally:
            self._thread.post_function(generator.close)

    async def tell_end(self, result: Result) -> None:
        """Tell the bot how its match ended, if the bot has been made."""
        if self._bot is not None:
            await self._call_method(self._bot.ended, result)

    async def wait_until_free(self, seconds: float) -> bool:
        """Wait until the bot's thread has finished what it does. Return `False` if it takes longer than this."""
        try:
            async with asyncio.timeout(seconds):
                await self._thread.wait_for_turn()
        except TimeoutError:
            return False
        return True

    def stop_thread(self) -> None:
        """Stop the thread, because the bot is not needed any more."""
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
    """Turn a call of sys.exit() in the bot into a failure of the bot, because its process has other matches to play."""
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(f"the bot called for the end of the process: {error!r}") from error


class BotThread:
    """A thread for one bot, so that objects which belong to a thread, such as connections, stay usable.

    It is a daemon thread, because a method that never returns must not keep the process from ending. It starts with the
    first call, so a bot whose methods are all coroutines has none.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def call_function(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the function in the thread. Return its result, or raise its exception."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_jobs, name=self._name, daemon=True)
            self._thread.start()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put((future, function, args))
        value, error = await future
        if error is not None:
            raise error
        return value

    async def wait_for_turn(self) -> None:
        """Return when all earlier calls have returned; at once if the thread was never needed."""
        if self._thread is not None:
            await self.call_function(_do_nothing)

    def post_function(self, function: Callable[[], Any]) -> None:
        """Call the function in the thread after all earlier calls, without waiting for it."""
        self._jobs.put((asyncio.get_running_loop().create_future(), function, ()))

    def stop(self) -> None:
        """End the thread as soon as the running method returns."""
        self._jobs.put(None)

    def _run_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, function, args = job
            if future.cancelled():  # cancelled before it could begin
                continue
            # An exception goes as a value: a future refuses to carry StopIteration.
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = function(*args), None
            except (Exception, SystemExit) as error:
                outcome = None, error
            _settle_future(future, outcome)


def _do_nothing() -> None:
    pass


def _settle_future(future: asyncio.Future[Any], outcome: tuple[Any, BaseException | None]) -> None:
    def settle() -> None:
        if not future.done():
            future.set_result(outcome)

    try:
        future.get_loop().call_soon_threadsafe(settle)
    except RuntimeError:  # the loop is closed, so nothing waits for the result
        return
