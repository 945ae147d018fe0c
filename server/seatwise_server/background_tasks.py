"""Tasks: kept until they end, cancelled reliably, limited in number; and the event loop in which a process runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from importlib.util import find_spec
from typing import Any, TypeVar

CANCEL_AGAIN_S = 0.1


class BackgroundTasks:
    """A set of tasks that no code awaits; asyncio itself keeps only weak references to tasks."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start_task(self, work: Coroutine[Any, Any, None], name: str | None = None) -> asyncio.Task[None]:
        """Start a task in the running loop and keep it until it ends."""
        task = asyncio.create_task(work, name=name)
        self.keep_task(task)
        return task

    def keep_task(self, task: asyncio.Task[None]) -> None:
        """Keep a task that runs already until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def request_cancel(self) -> None:
        """Ask every task to end."""
        for task in self._tasks:
            task.cancel()

    async def wait_for_all(self, timeout_s: float) -> None:
        """Wait until all have ended, for at most `timeout_s` seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)

    async def cancel_all(self) -> None:
        """Cancel every task and wait until all have ended."""
        await cancel_until_ended(self._tasks)


async def cancel_until_ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks repeatedly until all have ended.

    Once is not enough: up to Python 3.11 `wait_for`, and so redis-py, may swallow a cancellation.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_S)


T = TypeVar("T")

MOST_AWAITED_AT_ONCE = 32


async def gather_limited(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results, in order. After a failure it waits for the rest, and raises the first error."""
    work = list(work)
    turn = asyncio.Semaphore(MOST_AWAITED_AT_ONCE)

    async def one(each: Coroutine[Any, Any, T]) -> T:
        async with turn:
            return await each

    try:
        results = await asyncio.gather(*map(one, work), return_exceptions=True)
    finally:
        for each in work:
            each.close()  # after a cancellation some may not have begun
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]  # no exception is among them


def has_uvloop() -> bool:
    """Return whether uvloop is installed."""
    return find_spec("uvloop") is not None


def run_in_loop(work: Coroutine[Any, Any, T], *, with_uvloop: bool) -> T:
    """Run a coroutine to its end in a new event loop, and return its result. Exceptions of the coroutine come through.

    Ctrl-C cancels it, as in `asyncio.run`. Raises `ImportError` if uvloop is asked for and is not installed.
    """
    if not with_uvloop:
        return asyncio.run(work)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
