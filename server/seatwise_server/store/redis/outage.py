"""Decides which errors are an outage of Redis, and retries until its end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from redis.exceptions import (
    ClusterError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    ResponseError,
    SlotNotCoveredError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from seatwise_server.store.errors import StoreUnavailable

T = TypeVar("T")

BRIDGED_S = 10.0
"""An outage that is shorter than this is hidden from the callers."""

_FIRST_PAUSE_S = 0.02
_LONGEST_RETRY_PAUSE_S = 1.0

# redis-py strips the first word of the errors that it knows, so these are told by their class, the others by
# that word.
_CLASSES = (
    RedisConnectionError,
    RedisTimeoutError,
    ReadOnlyError,
    OutOfMemoryError,
    MasterDownError,
    ClusterError,  # CLUSTERDOWN, and endless redirections
    SlotNotCoveredError,
    TryAgainError,
    OSError,  # among them asyncio's TimeoutError
)
_OUTAGE_WORDS = (
    "BUSY ",
    "MISCONF",
    "NOREPLICAS",
    "NOAUTH",
    "UNBLOCKED",
    "READONLY",
    "OOM",
    "MASTERDOWN",
    "CLUSTERDOWN",
)
_CLUSTER_WORDS = ("Redis Cluster cannot be connected", "All slots are not covered")


def is_outage(error: object) -> bool:
    """Whether the same command may succeed later, without a change to the command."""
    if isinstance(error, _CLASSES):
        return True
    if isinstance(error, RedisClusterException):  # redis-py raises it for mistakes of the caller, too
        return str(error).startswith(_CLUSTER_WORDS)
    return isinstance(error, ResponseError) and str(error).startswith(_OUTAGE_WORDS)


async def retry_through_outage(ask: Callable[[], Awaitable[T]], bridge_s: float = BRIDGED_S) -> T:
    """Calls `ask` and returns its answer; repeats it during an outage, for at most `bridge_s` seconds.

    Raises StoreUnavailable if the outage lasts longer. A command whose reply was lost is sent again: `ask` only
    for commands that may run twice.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + bridge_s
    pause = _FIRST_PAUSE_S
    while True:
        try:
            return await ask()
        except Exception as error:
            if not is_outage(error):
                raise
            if loop.time() + pause >= deadline:
                raise StoreUnavailable(f"Redis does not answer: {error}") from error
        await asyncio.sleep(random.uniform(pause / 2, pause))
        pause = min(pause * 2, _LONGEST_RETRY_PAUSE_S)
