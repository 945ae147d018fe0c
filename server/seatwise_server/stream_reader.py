"""The task that reads a stream while the handler of the stream writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def reading_beside(
    reading: Coroutine[Any, Any, None], on_end: Callable[[], None]
) -> Iterator[asyncio.Task[None]]:
    """Runs `reading` as a task inside the block, and calls `on_end` when it ends.

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
