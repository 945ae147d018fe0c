"""Fixtures for the store on nodes that replace one another; a module that takes them has its own `client`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from private_redis.appends import Gaps
from seatwise_server.store import AppendTimeouts, Flusher, RedisClient, Store, check_server

_QUICK = AppendTimeouts(reply_s=2.0, first_retry_s=0.01, longest_retry_s=0.1, probe_s=0.1, replicas_s=0.3)
PAUSE_S = 0.02


@pytest.fixture
def store(client: RedisClient) -> Store:
    """The store on these nodes, which are empty."""
    return Store(client)


@pytest.fixture
def gaps() -> Gaps:
    """What both flushers say of Redis coming and going."""
    return Gaps()


@pytest_asyncio.fixture
async def flusher(client: RedisClient, gaps: Gaps) -> AsyncIterator[Flusher]:
    """A flusher that waits for no replica."""
    flusher = Flusher(client, gaps.listeners(), _QUICK)
    flusher.start()
    yield flusher
    await flusher.close(timeout_s=1)


@pytest_asyncio.fixture
async def careful(client: RedisClient, gaps: Gaps) -> AsyncIterator[Flusher]:
    """A flusher that waits for a replica, and for its disk where the servers know how."""
    facts = await check_server(client, allow_loss=False, wait_replicas=1)
    flusher = Flusher(client, gaps.listeners(), _QUICK, facts.wait)
    flusher.start()
    yield flusher
    await flusher.close(timeout_s=1)
