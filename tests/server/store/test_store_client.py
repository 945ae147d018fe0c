"""What a Redis must promise before we use it, and how its absence is told."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from harness.house import house_in
from private_redis.redis_server import fresh_server
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.store import RedisClient, ReplicaWait, check_server, keys, new_client, now_ms
from seatwise_server.store.errors import StoreRefused, StoreUnavailable
from seatwise_server.store.keeping import keep_key
from seatwise_server.store.redis import durability
from seatwise_server.store.redis.address import NodeAddress, RedisMode, parse_target
from seatwise_server.store.redis.client import MOST_COMMANDS_AT_ONCE


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A new server for each test: these tests do not treat it well."""
    yield from fresh_server(tmp_path)


async def set_config(redis: Redis, name: str, value: str) -> str:
    """Sets it and answers what it was."""
    before = (await redis.config_get(name))[name]
    await redis.config_set(name, value)
    return str(before)


async def test_our_own_server_is_good_enough(client: RedisClient) -> None:
    facts = await check_server(client, allow_loss=False)
    assert facts.is_lossless
    assert facts.durability == "fsync"
    assert facts.primaries[0].maxmemory_policy == "noeviction"
    assert int(facts.version.split(".")[0]) >= 7
    assert (facts.mode, facts.replicas, facts.unreachable) == (RedisMode.STANDALONE, (), ())


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
    client: RedisClient, redis_client: Redis, name: str, value: str, allow_loss: bool, advice: str
) -> None:
    before = await set_config(redis_client, name, value)
    try:
        with pytest.raises(StoreRefused) as refused:
            await check_server(client, allow_loss=allow_loss)
    finally:
        await set_config(redis_client, name, before)
    assert advice in str(refused.value)
    line = advice.removeprefix("CONFIG SET ").split()
    await redis_client.execute_command("CONFIG SET", *line)  # type: ignore[no-untyped-call]
    assert (await check_server(client, allow_loss=False)).is_lossless


async def test_a_lossy_server_is_taken_when_that_is_said(client: RedisClient, redis_client: Redis) -> None:
    before = await set_config(redis_client, "appendfsync", "everysec")
    try:
        facts = await check_server(client, allow_loss=True)
        assert facts.appendfsync == "everysec"
        assert facts.durability == "loss-allowed"
    finally:
        await set_config(redis_client, "appendfsync", before)


async def test_a_server_that_is_loading_is_waited_for(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile it says that it keeps no append-only file; who starts just then must not give up."""
    parse, loading = durability._parse_info, [{"loading": "1", "aof_enabled": "0"}]
    monkeypatch.setattr(
        durability, "_parse_info", lambda answer: parse(answer) | (loading.pop() if loading else {})
    )
    assert (await check_server(client, allow_loss=False)).is_lossless


async def test_a_server_that_hides_its_config_is_not_trusted(
    redis_server: EmbeddedRedis, redis_client: Redis
) -> None:
    await redis_client.execute_command("ACL", "SETUSER", "guest", "on", ">secret", "~*", "+@all", "-config")  # type: ignore[no-untyped-call]
    guest = new_client(redis_server.url.replace("unix://", "unix://guest:secret@"))
    with pytest.raises(StoreRefused, match="unknown"):
        await check_server(guest, allow_loss=False)
    assert (await check_server(guest, allow_loss=True)).appendfsync == "unknown"
    await guest.close_connections()


@pytest.mark.parametrize(
    ("version", "is_old"), [("6.2.14", True), ("7", False), ("7.0.0", False), ("8.2.1", False)]
)
async def test_the_version_is_read_as_a_number(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch, version: str, is_old: bool
) -> None:
    facts = await check_server(client, allow_loss=False)
    aged = replace(facts, primaries=(replace(facts.primaries[0], version=version),))

    async def read(_: RedisClient, __: int) -> durability.ServerFacts:
        return aged

    monkeypatch.setattr(durability, "read_facts", read)
    if is_old:
        with pytest.raises(StoreRefused, match=r"7\.0 or newer"):
            await check_server(client, allow_loss=True)
    else:
        assert await check_server(client, allow_loss=True)


@pytest.mark.parametrize(("version", "on_disk"), [("7.0.15", False), ("7.2.4", True), ("8.0", True)])
async def test_replicas_are_asked_for_their_disk_where_they_know_the_question(
    client: RedisClient, version: str, on_disk: bool
) -> None:
    facts = await check_server(client, allow_loss=False)
    node = replace(facts.primaries[0], version=version)
    facts = replace(facts, primaries=(node,), replicas=(node,), wait_replicas=1)
    assert facts.wait == ReplicaWait(1, on_disk)
    assert not replace(facts, replicas=(replace(node, appendonly=False),)).wait.on_disk
    assert not replace(facts, unreachable=(NodeAddress("10.0.0.7", 6379),)).wait.on_disk


async def test_replicas_that_are_not_there_cannot_be_waited_for(client: RedisClient) -> None:
    with pytest.raises(StoreRefused, match=r"wait for 1 replicas .* has 0"):
        await check_server(client, allow_loss=False, wait_replicas=1)


async def test_a_replica_is_refused(client: RedisClient, redis_client: Redis) -> None:
    await redis_client.replicaof("127.0.0.1", 1)
    with pytest.raises(StoreRefused, match="is a replica"):
        await check_server(client, allow_loss=False)


async def test_a_server_that_is_no_redis_is_refused() -> None:
    """A port was mistaken: what answers speaks another language."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        spoken.append(asyncio.current_task())
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()
        await writer.wait_closed()

    spoken: list[asyncio.Task[None] | None] = []
    async with await asyncio.start_server(speak, "127.0.0.1", 0) as other:
        client = new_client(f"redis://127.0.0.1:{other.sockets[0].getsockname()[1]}")
        with pytest.raises(StoreRefused, match="The server at this URL is not Redis"):
            await check_server(client, allow_loss=False)
        await client.close_connections()
        await asyncio.gather(*filter(None, spoken))


async def test_the_clock_is_redis_own(client: RedisClient) -> None:
    assert abs(await now_ms(client) - time.time() * 1000) < 5_000  # one machine here


@pytest.mark.parametrize(
    ("url", "mode", "hosts", "service"),
    [
        ("redis://localhost", RedisMode.STANDALONE, (), ""),
        ("rediss://user:pass@localhost:7000/1", RedisMode.STANDALONE, (), ""),
        ("unix:///run/redis.sock?db=1", RedisMode.STANDALONE, (), ""),
        ("redis+sentinel://a,b:7000/main", RedisMode.SENTINEL, (("a", 26379), ("b", 7000)), "main"),
        ("rediss+sentinel://:secret@a/main?db=2", RedisMode.SENTINEL, (("a", 26379),), "main"),
        ("redis+cluster://a,[::1]:7001", RedisMode.CLUSTER, (("a", 6379), ("::1", 7001)), ""),
        ("REDISS+cluster://u:p@a/0?ssl_cert_reqs=none", RedisMode.CLUSTER, (("a", 6379),), ""),
    ],
)
async def test_a_url_says_what_it_names(
    url: str, mode: RedisMode, hosts: tuple[tuple[str, int], ...], service: str
) -> None:
    target = parse_target(url)
    assert (target.mode, target.hosts, target.service) == (mode, hosts, service)
    client = new_client(url)
    assert client.mode is mode
    await client.close_connections()


def test_a_url_has_accounts_and_tls_for_data_nodes_and_for_sentinels() -> None:
    url = "rediss+sentinel://me:a%40b@h1,h2/main?db=3&ssl_cert_reqs=none&sentinel_password=watch"
    target = parse_target(url)
    assert target.options.items() >= {"username": "me", "password": "a@b", "db": 3}.items()
    assert target.options["ssl_cert_reqs"] == target.sentinel_options["ssl_cert_reqs"] == "none"
    assert target.sentinel_options["password"] == "watch"
    assert "username" not in target.sentinel_options
    assert "connection_class" in target.options


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("http://localhost", "redis://, rediss://, unix://"),
        ("localhost:6379", "redis://, rediss://, unix://"),
        ("redis+sentinel://a,b", "redis\\+sentinel://HOST,HOST/SERVICE"),
        ("redis+sentinel://a,b/main/0", "\\?db=0"),
        ("redis+cluster://a,b/1", "one database"),
        ("redis+cluster://a?db=1", "one database"),
        ("redis+cluster://", "names no host"),
        ("unix+cluster:///run/redis.sock", "redis://, rediss://, unix://"),
        ("redis://localhost?patience=5", "patience"),
        ("redis+cluster://localhost?patience=5", "patience"),
        ("redis+sentinel://localhost/main?patience=5", "patience"),
    ],
)
def test_other_urls_are_refused(url: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        new_client(url)


async def test_a_short_outage_is_bridged(redis_server: EmbeddedRedis, client: RedisClient) -> None:
    assert redis_server.pid is not None
    os.kill(redis_server.pid, signal.SIGKILL)
    asking = asyncio.create_task(client.call("INCR", "asked"))
    await asyncio.sleep(0.3)
    redis_server.ensure_running()
    assert await asking == 1


async def test_a_long_outage_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    gone = new_client(f"unix://{tmp_path_factory.mktemp('gone')}/redis.sock", bridge_s=0.1)
    for asked in (gone.call("PING"), gone.call_blocking("PING"), gone.call_many([("PING",)])):
        with pytest.raises(StoreUnavailable):
            await asked
    with pytest.raises(StoreUnavailable):
        await check_server(gone, allow_loss=True, within_s=0.1)
    with pytest.raises(StoreUnavailable):
        await anext(gone.listen_to("news"))
    await gone.close_connections()


async def test_a_wrong_command_is_no_outage(client: RedisClient) -> None:
    with pytest.raises(ResponseError):
        await client.call("NO-SUCH-COMMAND")


async def test_a_storm_waits_its_turn_instead_of_opening_connections(
    client: RedisClient, redis_client: Redis
) -> None:
    await asyncio.gather(*(client.call("INCR", "storm") for _ in range(2_000)))
    assert int((await redis_client.info("clients"))["connected_clients"]) <= MOST_COMMANDS_AT_ONCE + 5


@pytest_asyncio.fixture
async def listener(client: RedisClient) -> AsyncIterator[asyncio.Queue[tuple[str, str]]]:
    """What is heard on two channels."""
    heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def listen() -> None:
        async for notice in client.listen_to("one", "two"):
            heard.put_nowait(notice)

    listening = asyncio.create_task(listen())
    yield heard
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_notices_come_with_their_channel(
    listener: asyncio.Queue[tuple[str, str]], redis_client: Redis
) -> None:
    while await redis_client.pubsub_numsub("two") == [(b"two", 0)]:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    await redis_client.publish("two", "b")
    await redis_client.publish("one", "a")
    assert [await listener.get() for _ in range(2)] == [("two", "b"), ("one", "a")]


async def _pings(redis_client: Redis) -> int:
    """How often anybody has asked the server whether it is there."""
    stats = await redis_client.info("commandstats")
    return int(stats.get("cmdstat_ping", {"calls": 0})["calls"])


async def test_a_channel_without_notices_is_not_taken_for_dead(
    listener: asyncio.Queue[tuple[str, str]], redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatwise_server.store.redis.client.SILENCE_S", 0.2)
    before = await _pings(redis_client)
    while await _pings(redis_client) < before + 3:  # noqa: ASYNC110 - the server alone knows when it was asked
        await asyncio.sleep(0.02)
    await redis_client.publish("one", "still here")
    assert await listener.get() == ("one", "still here")


async def test_a_redis_that_stands_still_is_silent(
    client: RedisClient, redis_server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatwise_server.store.redis.client.SILENCE_S", 0.1)
    notices = client.listen_to("one")
    first = asyncio.ensure_future(anext(notices))
    await asyncio.sleep(0.15)
    assert redis_server.pid is not None
    os.kill(redis_server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnavailable, match="silent"):
            await first
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)


@pytest.mark.parametrize("look_s", [0.1, 60.0], ids=["at the next look", "when a task fails"])
async def test_a_server_stops_with_a_sentence_when_redis_is_told_to_evict_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look_s: float
) -> None:
    monkeypatch.setattr("seatwise_server.app.REDIS_LOOK_S", look_s)
    async with house_in(tmp_path, ws_port=None) as house:
        client, stopped = house.server.store.client, house.server.stopped
        await client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        if look_s > 1:
            await client.call("SET", keys.JOB_STREAM, "not a stream")
        async with asyncio.timeout(20):
            await asyncio.wait([stopped])
        assert "CONFIG SET maxmemory-policy noeviction" in str(stopped.exception())
        house.server.stopped = asyncio.Future()


async def test_a_clock_that_leaps_in_the_first_minute_of_a_server_is_noticed(tmp_path: Path) -> None:
    """Without a look at the start nothing tells how late it was, and all that is kept is due."""
    async with house_in(tmp_path, ws_port=None) as house:
        client, keeping = house.server.store.client, house.server.store.keeping
        for _ in range(500):
            if await client.call("HGET", keys.KEEPING_TIME, "clock"):
                break
            await asyncio.sleep(0.01)
        else:
            pytest.fail("the server did not look at the clock")
        await keep_key(client, "kept", 86_400_000)
        await client.call("SET", "kept", "1")
        await client.call("HINCRBY", keys.KEEPING_TIME, "clock", -400 * 86_400_000)  # as if it had leapt
        assert await keeping.remove_due() == 0
        assert await client.call("EXISTS", "kept") == 1
