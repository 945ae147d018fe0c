"""An event loop whose time is a number: nothing waits, and the same program runs the same way every time.

Where an ordinary loop would wait for the next timer, this one moves its clock there. It has no sockets and
no threads: what nobody in the loop will ever wake up is a `Deadlock`, not a test that hangs.

    @in_virtual_time
    async def test_it() -> None:
        await asyncio.sleep(3600)        # takes no time
        running().stand_still(0.3)       # the process is stopped: time goes on, and no timer rings
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

P = ParamSpec("P")
T = TypeVar("T")

EPOCH_S = 1000.0
"""What the clock shows at first: not 0, for the clock of a real loop never does."""


class Deadlock(RuntimeError):
    """All tasks wait, and no timer is set."""


class _NoSockets(selectors.SelectSelector):
    """Asks for what is ready without waiting, and lets the loop's clock move instead."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise Deadlock("all tasks wait, and no timer is set")
        if timeout > 0:
            self.loop.move_to_next_timer()
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time moves when nothing else is to be done, or when a test says so."""

    def __init__(self) -> None:
        self._now = EPOCH_S
        selector = _NoSockets()
        selector.loop = self
        super().__init__(selector)
        self.slow_callback_duration = float("inf")

    def time(self) -> float:
        """Seconds on a clock of its own."""
        return self._now

    def stand_still(self, seconds: float) -> None:
        """The process is stopped for so long: when it goes on, all timers of that time are late."""
        self._now += seconds

    def move_to_next_timer(self) -> None:
        """The clock shows the moment at which the next timer is due."""
        timers = cast("list[asyncio.TimerHandle]", self._scheduled)  # type: ignore[attr-defined]
        self._now = max(self._now, min(timer.when() for timer in timers))


def running() -> VirtualLoop:
    """The loop of this test."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


async def settle(rounds: int = 10) -> None:
    """Lets every task go as far as it can without time moving."""
    for _ in range(rounds):
        await asyncio.sleep(0)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs it in a loop of its own; tasks that it leaves behind are cancelled."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(_end(asyncio.all_tasks(loop)))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The test, run in a loop of its own; pytest sees an ordinary function."""

    @functools.wraps(test)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(test(*args, **kwargs))

    return wrapped
