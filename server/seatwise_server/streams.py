"""Streams: when each came, the task that reads one beside its handler, and one that is read once for all its followers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, NamedTuple, TypeVar

from seatwise_server.background_tasks import cancel_until_ended

_arrivals = itertools.count(1)


class StreamArrival(NamedTuple):
    """When a stream came to this process. A later one compares as greater."""

    number: int
    """Higher than that of each stream that came before it."""
    time_s: float
    """On the clock of the event loop."""


def note_arrival_of_stream() -> StreamArrival:
    """Return the arrival of a stream that comes now.

    Call it before anything is awaited for the stream. After a standstill many connections wait, most of them given up by their bots,
    and what is awaited for one may take longer than for the next.
    """
    return StreamArrival(next(_arrivals), asyncio.get_running_loop().time())


@contextmanager
def reading_beside(
    reading: Coroutine[Any, Any, None], on_end: Callable[[], None]
) -> Iterator[asyncio.Task[None]]:
    """Run `reading` as a task inside the block, and call `on_end` when it ends.

    After the block its outcome is dropped: gRPC fails a read if the stream was refused or its caller has gone, and
    asyncio would log that with a traceback.
    """
    reader = asyncio.create_task(reading)
    reader.add_done_callback(lambda _: on_end())
    try:
        yield reader
    finally:
        reader.cancel()
        reader.add_done_callback(_drop_outcome)


def _drop_outcome(reader: asyncio.Task[None]) -> None:
    if not reader.cancelled():
        reader.exception()


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
        """Begin to read: `on_item` is called with each item, and then all followers wake up; `on_end` at the end."""
        self._task = asyncio.create_task(self._read(items, on_item))
        self._task.add_done_callback(lambda _: on_end())

    async def stop(self) -> None:
        """Stop reading."""
        if self._task:
            await cancel_until_ended([self._task])

    async def wait_for_change(self) -> bool:
        """Wait for the next item or the end; returns False, at once, if there are no more. Raises what has ended the stream."""
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
