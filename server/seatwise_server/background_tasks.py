"""Background tasks: they are kept until they end, and can be cancelled reliably."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

CANCEL_AGAIN_S = 0.1


class BackgroundTasks:
    """A set of tasks that no code awaits; asyncio itself keeps only weak references to tasks."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start_task(self, work: Coroutine[Any, Any, None], name: str | None = None) -> asyncio.Task[None]:
        """Starts a task in the running loop and keeps it until it ends."""
        task = asyncio.create_task(work, name=name)
        self.keep_task(task)
        return task

    def keep_task(self, task: asyncio.Task[None]) -> None:
        """Keeps a task that runs already until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def request_cancel(self) -> None:
        """Asks every task to end."""
        for task in self._tasks:
            task.cancel()

    async def wait_for_all(self, timeout_s: float) -> None:
        """Waits until all have ended, for at most `timeout_s` seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)

    async def cancel_all(self) -> None:
        """Cancels every task and waits until all have ended."""
        await cancel_until_ended(self._tasks)


async def cancel_until_ended(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancels tasks repeatedly until all have ended.

    Once is not enough: up to Python 3.11 `wait_for`, and so redis-py, may swallow a cancellation.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_S)
