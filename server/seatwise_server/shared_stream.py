"""Reads a stream once, in a task, for all who follow it in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from seatwise_server.background_tasks import cancel_until_ended

ItemT = TypeVar("ItemT")


class SharedStream:
    """The task that reads, and what its followers wait for."""

    def __init__(self) -> None:
        self._is_over = False
        self._failure: Exception | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(
        self,
        items: AsyncGenerator[ItemT, None],
        on_item: Callable[[ItemT], object],
        on_end: Callable[[], object],
    ) -> None:
        """Begins to read: `on_item` is called with each item, and then all followers wake up; `on_end` at the end."""
        self._task = asyncio.create_task(self._read(items, on_item))
        self._task.add_done_callback(lambda _: on_end())

    async def stop(self) -> None:
        """Stops reading."""
        if self._task:
            await cancel_until_ended([self._task])

    async def wait_for_change(self) -> bool:
        """Waits for the next item or the end; returns False, at once, if there are no more. Raises what has ended the stream."""
        if self._failure:
            raise self._failure
        if self._is_over:
            return False
        await self._changed.wait()
        return True

    async def _read(self, items: AsyncGenerator[ItemT, None], on_item: Callable[[ItemT], object]) -> None:
        try:
            async with aclosing(items):
                async for item in items:
                    on_item(item)
                    self._wake_followers()
        except Exception as failure:
            self._failure = failure
        finally:
            self._is_over = True
            self._wake_followers()

    def _wake_followers(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
