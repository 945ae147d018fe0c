"""What a Redis must promise before we use it, and how its absence is told."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from redis_server import fresh_server

from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.store import check_server, client, connect, now_ms
from seatwise_server.store.errors import StoreRefused, StoreUnavailable


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A new server for each test: these tests do not treat it well."""
    yield from fresh_server(tmp_path)


async def set_config(redis: Redis, name: str, value: str) -> str:
    """Sets it and answers what it was."""
    before = (await redis.config_get(name))[name]
    await redis.config_set(name, value)
    return str(before)


async def test_our_own_server_is_good_enough(redis_client: Redis) -> None:
    facts = await check_server(redis_client, allow_loss=False)
    assert facts.is_lossless
    assert facts.maxmemory_policy == "noeviction"
    assert int(facts.version.split(".")[0]) >= 7
    assert facts.run_id


@pytest.mark.parametrize(
    ("name", "value", "allow_loss", "advice"),
    [
        ("maxmemory-policy", "allkeys-lru", False, "CONFIG SET maxmemory-policy noeviction"),
        ("maxmemory-policy", "volatile-ttl", True, "CONFIG SET maxmemory-policy noeviction"),
        ("appendonly", "no", False, "CONFIG SET appendonly yes appendfsync always"),
        ("appendfsync", "everysec", False, "CONFIG SET appendfsync always"),
    ],
)
async def test_a_server_that_could_lose_a_match_is_refused_with_the_right_line(
    redis_client: Redis, name: str, value: str, allow_loss: bool, advice: str
) -> None:
    before = await set_config(redis_client, name, value)
    try:
        with pytest.raises(StoreRefused) as refused:
            await check_server(redis_client, allow_loss=allow_loss)
    finally:
        await set_config(redis_client, name, before)
    assert advice in str(refused.value)
    line = advice.removeprefix("CONFIG SET ").split()
    await redis_client.execute_command("CONFIG SET", *line)  # type: ignore[no-untyped-call]
    assert (await check_server(redis_client, allow_loss=False)).is_lossless


async def test_a_lossy_server_is_taken_when_that_is_said(redis_client: Redis) -> None:
    before = await set_config(redis_client, "appendfsync", "everysec")
    try:
        facts = await check_server(redis_client, allow_loss=True)
        assert facts.appendfsync == "everysec"
        assert not facts.is_lossless
    finally:
        await set_config(redis_client, "appendfsync", before)


async def test_a_server_that_hides_its_config_is_not_trusted(
    redis_server: EmbeddedRedis, redis_client: Redis
) -> None:
    await redis_client.execute_command("ACL", "SETUSER", "guest", "on", ">secret", "~*", "+@all", "-config")  # type: ignore[no-untyped-call]
    guest = connect(redis_server.url.replace("unix://", "unix://guest:secret@"))
    with pytest.raises(StoreRefused, match="unknown"):
        await check_server(guest, allow_loss=False)
    assert (await check_server(guest, allow_loss=True)).appendfsync == "unknown"
    await guest.aclose()


@pytest.mark.parametrize(
    ("version", "is_old"), [("6.2.14", True), ("7", False), ("7.0.0", False), ("8.2.1", False)]
)
async def test_the_version_is_read_as_a_number(
    redis_client: Redis, monkeypatch: pytest.MonkeyPatch, version: str, is_old: bool
) -> None:
    facts = await check_server(redis_client, allow_loss=False)

    async def read(_: Redis) -> client.ServerFacts:
        return client.ServerFacts("redis", version, True, "always", "noeviction", facts.run_id)

    monkeypatch.setattr(client, "_read_facts", read)
    if is_old:
        with pytest.raises(StoreRefused, match=r"7\.0 or newer"):
            await check_server(redis_client, allow_loss=True)
    else:
        assert await check_server(redis_client, allow_loss=True)


async def test_the_clock_is_redis_own(redis_client: Redis) -> None:
    assert abs(await now_ms(redis_client) - time.time() * 1000) < 5_000  # one machine here


def test_other_urls_are_refused() -> None:
    with pytest.raises(ValueError, match="redis://, rediss://, unix://"):
        connect("http://localhost")


async def test_a_short_outage_is_bridged(redis_server: EmbeddedRedis, redis_client: Redis) -> None:
    assert redis_server.pid is not None
    os.kill(redis_server.pid, signal.SIGKILL)
    asking = asyncio.create_task(client.call(redis_client, "INCR", "asked"))
    await asyncio.sleep(0.3)
    redis_server.ensure_running()
    assert await asking == 1


async def test_a_long_outage_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    gone = connect(f"unix://{tmp_path_factory.mktemp('gone')}/redis.sock")
    gone.connection_pool.connection_kwargs["retry"]._retries = 1
    with pytest.raises(StoreUnavailable):
        await client.call(gone, "PING")
    with pytest.raises(StoreUnavailable):
        await client.call_many(gone, [("PING",)])
    await gone.aclose()


async def test_a_wrong_command_is_no_outage(redis_client: Redis) -> None:
    with pytest.raises(ResponseError):
        await client.call(redis_client, "NO-SUCH-COMMAND")


async def test_a_storm_waits_its_turn_instead_of_opening_connections(redis_client: Redis) -> None:
    await asyncio.gather(*(client.call(redis_client, "INCR", "storm") for _ in range(2_000)))
    assert int((await redis_client.info("clients"))["connected_clients"]) <= client.AT_ONCE + 5
