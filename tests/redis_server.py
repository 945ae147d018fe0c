"""Fixtures that give a test a real private Redis: `redis_server` for the session, `store` fresh for each test."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from redis.asyncio import Redis
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.store.client import connect


@pytest.fixture(scope="session")
def redis_server() -> Iterator[EmbeddedRedis]:
    """One server for the whole session (for each worker of xdist)."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder, EmbeddedRedis(Path(folder) / "redis") as server:
        yield server


@pytest_asyncio.fixture
async def redis_client(redis_server: EmbeddedRedis) -> AsyncIterator[Redis]:
    """A client to the session's server, which is empty now."""
    redis_server.ensure_running()
    client = connect(redis_server.url)
    await client.flushall()
    yield client
    await client.aclose()
