"""Runs the methods of one bot object: coroutines in the event loop, and all others in a thread of the bot's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from inspect import isasyncgenfunction, isawaitable, iscoroutine, iscoroutinefunction, isgenerator
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from seatwise.bot import Bot, BotFactory, ask_bot, is_async, new_bot
from seatwise.errors import BadAnswerError
from seatwise.kits.game_kit import GameKit, RaceMethod, TurnMethod
from seatwise.offer import Offer, TimeLeft
from seatwise.result import Result

QUICK_S: Final = 0.0005
"""A call of a bot is quick if it takes no longer than this, in seconds."""
QUICK_CALLS: Final = 3
"""After so many quick calls of a bot in a row the event loop waits for the next."""
MOST_WAITING_CALLS: Final = 100
"""The most calls that wait for a thread. With more, those are dropped that nobody waits for any more."""
LONGEST_WAIT_S: Final = 0.001
"""The longest time, in seconds, that the event loop waits for a bot that was quick so far."""

_NO_ANSWER: Final = object()
"""Marks the end of a generator in the thread."""

Job: TypeAlias = "tuple[asyncio.Future[Any] | None, Callable[..., Any], tuple[Any, ...]]"
"""A call in a thread, and the future of its outcome; `None` if nobody waits for it."""


class BotRunner:
    """Calls the methods of one bot, one at a time."""

    def __init__(self, factory: BotFactory, offer: Offer, kit: GameKit) -> None:
        self._factory = factory
        self._offer = offer
        self._kit = kit
        self._thread = BotThread(f"{offer.match}/{offer.seat}")
        self._bot: Bot | None = None
        self._coroutines: dict[str, bool] = {}
        """By the name of a method of the bot, whether it is a coroutine."""

    async def make_bot(self) -> None:
        """Make the bot and set it up. Exceptions of the bot come through, as in all methods here."""
        if _is_async(getattr(self._factory, self._kit.main_method, None)):
            self._bot = new_bot(self._factory, self._offer)
        else:
            self._bot = await self._thread.call_function(new_bot, self._factory, self._offer)
        await self._call_method(self._bot.setup, self._offer)

    def ask_bot(self, method: TurnMethod, view: Any, time: TimeLeft) -> asyncio.Future[Any]:
        """Begin to ask the bot. Return the future of its move, or of an awaitable of it (`await_move`).

        If the future is cancelled, the bot's method runs on in its thread, and the next call waits for it.
        """
        assert self._bot is not None
        if self._is_coroutine(self._bot, method):
            return asyncio.create_task(self._ask_coroutine(self._bot, method, view, time))
        return self._thread.call_function(_ask_in_time, self._bot, method, view, time)

    async def await_move(self, move: Any) -> Any:
        """Return the move that an awaitable of the bot brings."""
        with _refuse_exit():
            return await move

    async def _ask_coroutine(self, bot: Bot, method: TurnMethod, view: Any, time: TimeLeft) -> Any:
        move = _ask_in_time(bot, method, view, time)
        return await self.await_move(move) if iscoroutine(move) else move

    def _is_coroutine(self, bot: Bot, method: TurnMethod) -> bool:
        found = self._coroutines.get(method.name)
        if found is None:
            try:
                found = is_async(bot, method)
            except Exception:  # the call itself raises it again, as an exception of the bot
                found = False
            self._coroutines[method.name] = found
        return found

    async def run_generator(self, method: RaceMethod, view: Any, time: TimeLeft) -> AsyncGenerator[Any, None]:
        """Yield the moves and thoughts that the bot yields in one round. When this is closed, the bot's generator is closed too."""
        assert self._bot is not None
        self._bot.time = time
        reader = method.new_reader(view)
        with _refuse_exit():
            async with aclosing(self._open_generator(self._bot, method, view)) as yielded:
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


def _ask_in_time(bot: Bot, method: TurnMethod, view: Any, time: TimeLeft) -> Any:
    """Tell the bot its time, and ask it. Return its move, or a coroutine that returns it."""
    try:
        bot.time = time
        return ask_bot(bot, method, view)
    except SystemExit as error:
        raise _refused_exit(error) from error


def _is_async(function: object) -> bool:
    return iscoroutinefunction(function) or isasyncgenfunction(function)


@contextmanager
def _refuse_exit() -> Iterator[None]:
    """Turn a call of sys.exit() in the bot into a failure of the bot, because its process has other matches to play."""
    try:
        yield
    except SystemExit as error:
        raise _refused_exit(error) from error


def _refused_exit(error: SystemExit) -> RuntimeError:
    return RuntimeError(f"the bot called for the end of the process: {error!r}")


class BotThread:
    """A thread for one bot, so that objects which belong to a thread, such as connections, stay usable.

    It is a daemon thread, because a method that never returns must not keep the process from ending. It starts with the
    first call, so a bot whose methods are all coroutines has none.

    The event loop waits a moment for a bot that is quick, because a round through the loop costs more than most answers.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._outcomes = _OUTCOMES.setdefault(self._loop, ThreadOutcomes(self._loop))
        self._thread: threading.Thread | None = None
        self._quick_calls = 0
        """Number of quick calls in a row."""

    def call_function(self, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Call the function in the thread. Return the future of its result, or of its exception."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_jobs, name=self._name, daemon=True)
            self._thread.start()
        if self._jobs.qsize() > MOST_WAITING_CALLS:
            self._drop_cancelled()
        future: asyncio.Future[Any] = self._loop.create_future()
        job = future, function, args
        if self._quick_calls < QUICK_CALLS:
            self._jobs.put(job)
        elif not self._outcomes.wait_briefly(lambda: self._jobs.put(job), future):
            self._quick_calls = 0
        return future

    async def wait_for_turn(self) -> None:
        """Return when all earlier calls have returned; at once if the thread was never needed."""
        if self._thread is not None:
            await self.call_function(lambda: None)

    def post_function(self, function: Callable[[], Any]) -> None:
        """Call the function in the thread after all earlier calls, without waiting for it."""
        self._jobs.put((None, function, ()))

    def _drop_cancelled(self) -> None:
        """Drop the calls that were cancelled before they could begin: a bot that thinks long may be asked very often."""
        waiting: list[Job | None] = []
        with suppress(Empty):
            while True:
                waiting.append(self._jobs.get_nowait())
        for job in waiting:
            if job is None or job[0] is None or not job[0].cancelled():
                self._jobs.put(job)

    def stop(self) -> None:
        """End the thread as soon as the running method returns."""
        self._jobs.put(None)

    def _run_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, function, args = job
            if future is not None and future.cancelled():  # cancelled before it could begin
                continue
            result: Any = None
            failure: BaseException | None = None
            began_s = perf_counter()
            try:
                result = function(*args)
            except (Exception, SystemExit) as error:
                failure = error
            self._quick_calls = self._quick_calls + 1 if perf_counter() - began_s <= QUICK_S else 0
            if future is not None:
                self._outcomes.post_outcome(future, result, failure)
            del job, future, args, result, failure  # the thread waits now, and must keep nothing alive


class ThreadOutcomes:
    """Takes the outcomes of calls in threads to an event loop. Outcomes that come at the same time wake the loop once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._wake_loop = loop.call_soon_threadsafe
        self._posted: SimpleQueue[tuple[asyncio.Future[Any], Any, BaseException | None]] = SimpleQueue()
        self._is_woken = False
        self._is_waiting = False

    def post_outcome(self, future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
        """Settle the future in its loop, unless it is cancelled by then. Any thread may call this."""
        self._posted.put((future, result, failure))
        if self._is_waiting or self._is_woken:
            return
        self._is_woken = True
        try:
            self._wake_loop(self._settle_woken)
        except RuntimeError:  # the loop is closed, so nothing waits for the result
            return

    def wait_briefly(self, start_call: Callable[[], None], future: asyncio.Future[Any]) -> bool:
        """Start a call, and wait for its outcome in the thread of the loop. Return whether it came within `LONGEST_WAIT_S`."""
        self._is_waiting = True
        start_call()
        ends_s = perf_counter() + LONGEST_WAIT_S
        while not future.done() and (left_s := ends_s - perf_counter()) > 0:
            try:
                _settle_future(*self._posted.get(timeout=left_s))
            except Empty:
                break
        self._is_waiting = False  # first, so that what comes from now on wakes the loop again
        self._settle_posted()
        return future.done()

    def _settle_woken(self) -> None:
        self._is_woken = False  # first, so that what comes from now on wakes the loop again
        self._settle_posted()

    def _settle_posted(self) -> None:
        while not self._posted.empty():
            _settle_future(*self._posted.get_nowait())


def _settle_future(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(_carried(failure))


def _carried(failure: BaseException) -> BaseException:
    """Return the exception in a form that a future takes: it refuses StopIteration."""
    if not isinstance(failure, StopIteration):
        return failure
    carried = RuntimeError("the bot raised StopIteration")
    carried.__cause__ = failure
    return carried


_OUTCOMES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadOutcomes]] = WeakKeyDictionary()
