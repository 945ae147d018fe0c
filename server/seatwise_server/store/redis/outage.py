"""What counts as an outage of Redis, and waiting for its end."""

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
"""An outage that is shorter nobody hears of."""

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0

# Errors that redis-py knows lose their first word and are told by class, the others by that word.
_CLASSES = (
    RedisConnectionError,
    RedisTimeoutError,
    ReadOnlyError,
    OutOfMemoryError,
    MasterDownError,
    ClusterError,  # CLUSTERDOWN, and redirections without end
    SlotNotCoveredError,
    TryAgainError,
    OSError,  # and with it the TimeoutError of asyncio
)
_WORDS = (
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
    """Whether the same command may work later, without anybody changing the command."""
    if isinstance(error, _CLASSES):
        return True
    if isinstance(error, RedisClusterException):  # redis-py's word for mistakes of the caller, too
        return str(error).startswith(_CLUSTER_WORDS)
    return isinstance(error, ResponseError) and str(error).startswith(_WORDS)


async def retry_through_outage(ask: Callable[[], Awaitable[T]], bridge_s: float = BRIDGED_S) -> T:
    """The answer, asked for again as long as there is an outage and `bridge_s` is not over.

    Then raises StoreUnavailable. A command whose reply was lost is sent again: only ask what may run twice.
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
        pause = min(pause * 2, _LONGEST_PAUSE_S)
