"""The flusher: group commits in order, through everything that can happen to a real Redis."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import pytest_asyncio
from private_redis.appends import Load, owned, until
from private_redis.redis_server import fresh_server
from redis.asyncio import Redis

from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.store import (
    AppendResult,
    AppendTimeouts,
    Flusher,
    Listeners,
    RedisClient,
    Store,
    keys,
    new_client,
)
from seatwise_server.store.group_commit import router
from seatwise_server.store.group_commit.node_writer import NodeWriter


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A new server for each test: these tests do not treat it well."""
    yield from fresh_server(tmp_path)


QUICK = AppendTimeouts(
    reply_s=0.5, first_retry_s=0.01, longest_retry_s=0.05, probe_s=0.05, gone_for_good_s=30
)


class Heard:
    """What a flusher told its listeners."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.gaps: list[float] = []

    def listeners(self) -> Listeners:
        return Listeners(lambda: self.said.append("down"), self._up, lambda _: self.said.append("lost"))

    def _up(self, gap_s: float) -> None:
        self.said.append("up")
        self.gaps.append(gap_s)


class Watched(NodeWriter):
    """A courier that notes how many commands each exchange had."""

    sizes: ClassVar[list[int]] = []

    async def _exchange(self, commands: list[bytes]) -> list[object]:
        self.sizes.append(len(commands))
        return await super()._exchange(commands)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest_asyncio.fixture
async def quick(client: RedisClient, heard: Heard) -> AsyncIterator[Flusher]:
    """A flusher that loses patience soon."""
    flusher = Flusher(client, heard.listeners(), QUICK)
    flusher.start()
    yield flusher
    await flusher.close(timeout_s=1)


async def test_answers_come_in_the_order_of_the_appends(store: Store, flusher: Flusher) -> None:
    matches = await owned(store, 20)
    heard: list[tuple[str, int, AppendResult]] = []
    for seq in (1, 2, 3):
        for match in matches:
            flusher.append_entries(
                match, 1, "a", seq, [b"e"], lambda it, m=match, s=seq: heard.append((m, s, it))
            )  # type: ignore[misc]
    await until(lambda: len(heard) == 60)
    assert heard == [(match, seq, AppendResult.OK) for seq in (1, 2, 3) for match in matches]


async def test_entries_queued_together_go_together(
    store: Store, client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "NodeWriter", Watched)
    monkeypatch.setattr(Watched, "sizes", [])
    matches = await owned(store, 100)
    flusher = Flusher(client, patience=AppendTimeouts(probe_s=60))
    flusher.start()
    load = Load(flusher, matches, 3)
    load.start()
    await until(load.is_over)
    assert Watched.sizes[-2:] == [100, 100]
    assert sum(Watched.sizes) <= 402  # the first batch twice at most, for the scripts to be loaded
    await flusher.close()


async def test_single_entries_go_without_the_script_once_a_match_was_checked(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    load = Load(flusher, await owned(store, 10), 20)
    await redis_client.config_resetstat()
    load.start()
    await until(load.is_over)
    await load.check(store)
    calls = await redis_client.info("commandstats")
    assert (
        calls["cmdstat_evalsha"]["calls"] <= 20
    )  # the first entries, twice at most: Redis may not know the script
    assert calls["cmdstat_xadd"]["calls"] >= 190


async def test_a_callback_that_fails_hurts_nobody_else(store: Store, flusher: Flusher) -> None:
    matches = await owned(store, 3)
    heard: list[AppendResult] = []

    def fail(_: AppendResult) -> None:
        raise RuntimeError("my own mistake")

    for match, done in zip(matches, (heard.append, fail, heard.append), strict=True):
        flusher.append_entries(match, 1, "a", 1, [b"e"], done)
    await until(lambda: len(heard) == 2)
    assert await flusher.append_and_wait(matches[1], 1, "a", 2, [b"e"]) is AppendResult.OK


async def test_a_sick_journal_is_let_go_and_the_others_go_on(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    matches = await owned(store, 3)
    await redis_client.set(keys.match_journal(matches[1]), "not a stream")
    answers = await asyncio.gather(*(flusher.append_and_wait(match, 1, "a", 1, [b"e"]) for match in matches))
    assert answers == [AppendResult.OK, AppendResult.FENCED, AppendResult.OK]
    assert flusher.healthy


@pytest.mark.parametrize("after", [200, 600, 1000])
async def test_nothing_is_lost_or_doubled_when_redis_is_killed(
    store: Store, quick: Flusher, heard: Heard, redis_server: EmbeddedRedis, after: int
) -> None:
    load = Load(quick, await owned(store, 40), 40)
    load.start()
    await until(lambda: load.count >= after)
    assert redis_server.pid is not None
    os.kill(redis_server.pid, signal.SIGKILL)
    await until(lambda: not quick.healthy)
    await until(redis_server.ensure_running)
    await until(load.is_over)
    await load.check(store)
    assert heard.said == ["down", "up"]
    assert quick.healthy


async def test_a_redis_that_stands_still_is_asked_again(
    store: Store, quick: Flusher, heard: Heard, redis_server: EmbeddedRedis
) -> None:
    load = Load(quick, await owned(store, 20), 30)
    load.start()
    await until(lambda: load.count >= 100)
    assert redis_server.pid is not None
    os.kill(redis_server.pid, signal.SIGSTOP)
    try:
        await until(lambda: not quick.healthy)
        await asyncio.sleep(0.3)
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)
    await until(load.is_over)
    await load.check(store)
    assert heard.said == ["down", "up"]
    assert heard.gaps[0] > 0.3
    assert AppendResult.ALREADY in {it for answers in load.answers.values() for it in answers}


@pytest.mark.parametrize(
    ("ill", "well"),
    [
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        ("CLIENT KILL TYPE normal SKIPME yes", "PING"),
        ("SCRIPT FLUSH", "PING"),
    ],
)
async def test_a_redis_that_refuses_for_now_is_asked_until_it_accepts(
    store: Store, quick: Flusher, redis_client: Redis, ill: str, well: str
) -> None:
    load = Load(quick, await owned(store, 20), 30)
    load.start()
    await until(lambda: load.count >= 100)
    await redis_client.execute_command(*ill.split())  # type: ignore[no-untyped-call]
    await asyncio.sleep(0.1)
    await redis_client.execute_command(*well.split())  # type: ignore[no-untyped-call]
    await until(load.is_over)
    await load.check(store)


class Interrupted(NodeWriter):
    """A courier in the middle of whose first batch something happens to Redis."""

    middle: ClassVar[Callable[[], Awaitable[object]] | None] = None

    async def _exchange(self, commands: list[bytes]) -> list[object]:
        half = len(commands) // 2
        middle = type(self).middle
        if middle is None or half == 0:
            return await super()._exchange(commands)
        replies = await super()._exchange(commands[:half])
        await middle()
        Interrupted.middle = None
        return [*replies, *await super()._exchange(commands[half:])]


async def test_entries_answered_before_an_outage_are_answered_once(
    store: Store, client: RedisClient, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "NodeWriter", Interrupted)
    matches = await owned(store, 11)
    flusher = Flusher(client, patience=QUICK)
    flusher.start()
    await flusher.append_and_wait(matches.pop(), 1, "a", 1, [b"loads the script"])
    load = Load(flusher, matches, 5)
    Interrupted.middle = lambda: redis_client.replicaof("127.0.0.1", 1)
    load.start()
    await until(lambda: not flusher.healthy)
    assert load.count == 5
    await redis_client.replicaof("NO", "ONE")
    await until(load.is_over)
    await load.check(store)
    await flusher.close()


async def test_an_idle_flusher_notices_that_redis_is_gone(
    quick: Flusher, heard: Heard, redis_server: EmbeddedRedis
) -> None:
    assert redis_server.pid is not None
    os.kill(redis_server.pid, signal.SIGKILL)
    await until(lambda: heard.said == ["down"])
    await until(redis_server.ensure_running)
    await until(lambda: heard.said == ["down", "up"])
    assert quick.healthy


async def test_a_redis_gone_for_good_is_said_once(
    heard: Heard, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with EmbeddedRedis(tmp_path_factory.mktemp("gone")) as server:
        client = new_client(server.url)
        flusher = Flusher(client, heard.listeners(), AppendTimeouts(probe_s=0.01, gone_for_good_s=0.1))
        flusher.start()
    flusher.append_entries("matches/1", 1, "a", 1, [b"e"], lambda _: None)
    await until(lambda: "lost" in heard.said)
    await asyncio.sleep(0.2)
    assert heard.said == ["down", "lost"]
    started = time.monotonic()
    assert not await flusher.close(timeout_s=0.1)
    assert time.monotonic() - started < 1
    await client.close_connections()


async def test_closing_sends_what_is_queued(store: Store, client: RedisClient) -> None:
    matches = await owned(store, 1_500)
    flusher = Flusher(client)
    flusher.start()
    heard: list[AppendResult] = []
    for match in matches:
        flusher.append_entries(match, 1, "a", 1, [b"e"], heard.append)
    assert await flusher.close()
    assert heard == [AppendResult.OK] * len(matches)
