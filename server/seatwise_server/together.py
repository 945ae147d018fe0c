"""Many requests to the store at the same time. One after the other, each would wait for a turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")

MOST_AWAITED_AT_ONCE = 32


async def gather_limited(work: Iterable[Awaitable[T]]) -> list[T]:
    """Returns all results, in order. After a failure it waits for the rest, and raises the first error."""
    turn = asyncio.Semaphore(MOST_AWAITED_AT_ONCE)

    async def one(each: Awaitable[T]) -> T:
        async with turn:
            return await each

    results = await asyncio.gather(*map(one, work), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]  # no exception is among them
