"""Fixtures that give a test a real private Redis: one server for the session, empty for each test.

A test module that kills or spoils its server gives each test a new one, by a fixture of its own with the name
`redis_server` that yields from `fresh_server(tmp_path)`.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.store import Flusher, RedisClient, Store, new_client


@pytest.fixture(scope="session")
def redis_server() -> Iterator[EmbeddedRedis]:
    """One server for the whole session, and for each worker of xdist."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        yield from fresh_server(Path(folder))


def fresh_server(folder: Path) -> Iterator[EmbeddedRedis]:
    """A server that lives as long as the test that iterates."""
    with EmbeddedRedis(folder / "redis") as server:
        yield server


@pytest_asyncio.fixture
async def redis_client(redis_server: EmbeddedRedis) -> AsyncIterator[Redis]:
    """redis-py's own client to the session's server, which is empty now."""
    redis = Redis.from_url(redis_server.url, protocol=2)
    await redis.flushall()
    yield redis
    await redis.aclose()


@pytest_asyncio.fixture
async def client(redis_server: EmbeddedRedis, redis_client: Redis) -> AsyncIterator[RedisClient]:  # noqa: ARG001 - empties it
    """Our client to the session's server, which is empty now."""
    client = new_client(redis_server.url)
    yield client
    await client.close_connections()


@pytest.fixture
def store(client: RedisClient) -> Store:
    """The store on an empty Redis."""
    return Store(client)


@pytest_asyncio.fixture
async def flusher(client: RedisClient) -> AsyncIterator[Flusher]:
    """A running flusher to the session's server."""
    flusher = Flusher(client)
    flusher.start()
    yield flusher
    await flusher.close(timeout_s=1)
