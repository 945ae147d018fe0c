"""The store on a real primary with two replicas and three sentinels: killed, stopped and cut off."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from operator import attrgetter

import pytest
import pytest_asyncio
from harness.proxy import proxy_to
from harness.redis_nodes import SERVICE, SentinelNodes, binaries, sentinels_in
from private_redis.appends import GOOD, PATIENCE_S, Gaps, Load, owned, until, written
from private_redis.replicated import PAUSE_S, careful, flusher, gaps, store

from seatwise_server.store import AppendResult, Flusher, RedisClient, Store, check_server, new_client
from seatwise_server.store.errors import StoreRefused, StoreUnavailable
from seatwise_server.store.redis.address import RedisMode
from seatwise_server.store.redis.topology import THE_PRIMARY

__all__ = ["careful", "flusher", "gaps", "store"]
"""Fixtures of this module."""


@pytest.fixture(scope="module", params=binaries(), ids=attrgetter("name"))
def formed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SentinelNodes]:
    """One set for the module."""
    with sentinels_in(tmp_path_factory.mktemp("sentinels"), request.param) as nodes:
        yield nodes


@pytest.fixture
def nodes(formed: SentinelNodes) -> SentinelNodes:
    """The set, whole and empty."""
    formed.revive()
    formed.empty()
    return formed


@pytest_asyncio.fixture
async def client(nodes: SentinelNodes) -> AsyncIterator[RedisClient]:
    client = new_client(nodes.url, bridge_s=PATIENCE_S)
    yield client
    await client.close_connections()


async def test_primary_and_replicas_are_asked_what_they_promise(
    client: RedisClient, nodes: SentinelNodes
) -> None:
    facts = await check_server(client, allow_loss=False)
    assert facts.mode is RedisMode.SENTINEL
    assert [node.role for node in facts.nodes] == ["master", "slave", "slave"]
    assert {str(node.address) for node in facts.replicas} == {
        node.address for node in nodes.replicas_of(nodes.primary())
    }
    assert facts.is_lossless
    assert facts.durability == "loss-allowed"  # by a failover, and nobody waits for the replicas
    assert (await check_server(client, allow_loss=False, wait_replicas=2)).durability == "fsync"
    with pytest.raises(StoreRefused, match=r"wait for 3 replicas .* has 2"):
        await check_server(client, allow_loss=False, wait_replicas=3)


async def test_other_urls_for_the_same_nodes_are_refused(nodes: SentinelNodes) -> None:
    [replica, _] = nodes.replicas_of(nodes.primary())
    for url, hint in (
        (f"redis://{nodes.sentinels[0].address}", r"redis\+sentinel://HOST,HOST/SERVICE"),
        (f"redis://{replica.address}", "is a replica"),
        (f"redis+cluster://{nodes.primary().address}", "is not a cluster"),
    ):
        client = new_client(url)
        with pytest.raises(StoreRefused, match=hint):
            await check_server(client, allow_loss=True)
        await client.close_connections()
    client = new_client(nodes.url + "x", bridge_s=0.1)
    with pytest.raises(StoreUnavailable):
        await client.call("PING")
    await client.close_connections()


async def test_a_dead_sentinel_is_passed_over(nodes: SentinelNodes) -> None:
    client = new_client(nodes.url.replace("//", "//127.0.0.1:1,"))
    assert await client.call("PING")
    await client.close_connections()


async def test_no_sentinel_is_forgotten_when_many_ask_at_once(nodes: SentinelNodes) -> None:
    """One that was silent for a while is asked again, when the others are silent."""
    first, second, _ = nodes.sentinels
    async with proxy_to(first.address) as slow, proxy_to(second.address) as quick:
        client = new_client(f"redis+sentinel://{slow.address},{quick.address}/{SERVICE}")
        slow.stall()
        many = [
            client.routes.new_connection(THE_PRIMARY) for _ in range(20)
        ]  # calls of a client would share one
        await asyncio.gather(*(each.connect() for each in many))  # type: ignore[no-untyped-call]
        await asyncio.gather(*(each.disconnect() for each in many))
        slow.go_on()
        quick.stall()
        connection = client.routes.new_connection(THE_PRIMARY)
        await connection.connect()  # type: ignore[no-untyped-call]
        assert connection.is_connected
        await connection.disconnect()
        await client.close_connections()


async def test_with_a_replica_waited_for_a_failover_loses_nothing(
    client: RedisClient, store: Store, careful: Flusher, gaps: Gaps, nodes: SentinelNodes
) -> None:
    load = Load(careful, await owned(store, 40), 10_000, PAUSE_S)
    load.start()
    hearing = asyncio.ensure_future(anext(client.listen_to("news")))
    await until(lambda: load.count > 400)
    nodes.primary().kill()
    await until(lambda: gaps.said == ["down"])
    before = load.count
    assert await client.call("INCR", "bridged") == 1  # a call takes as long as the failover, and no longer
    with pytest.raises(StoreUnavailable):  # who listens has to listen again
        await hearing
    await until(lambda: load.count > before + 200)
    await load.check_answered(store)
    load.end_soon(10)
    await until(load.is_over)
    await load.check(store)  # nobody holds anything here: what was answered is there by itself
    assert gaps.are_over()
    assert careful.mends == 0


async def test_a_primary_that_stands_still_is_replaced_and_comes_back_as_a_replica(
    store: Store, careful: Flusher, gaps: Gaps, nodes: SentinelNodes
) -> None:
    load = Load(careful, await owned(store, 20), 10_000, PAUSE_S)
    load.start()
    await until(lambda: load.count > 200)
    frozen = nodes.primary()
    frozen.signal(signal.SIGSTOP)
    try:
        await until(lambda: nodes.primary() is not frozen)
        before = load.count
        await until(lambda: load.count > before + 200)
    finally:
        frozen.signal(signal.SIGCONT)
    await asyncio.sleep(0.3)  # it thinks that it is the primary still
    load.end_soon(10)
    await until(load.is_over)
    await load.check(store)
    assert gaps.are_over()


async def test_entries_that_a_failover_forgot_are_written_again(
    store: Store, flusher: Flusher, gaps: Gaps, nodes: SentinelNodes
) -> None:
    *matches, idle, unheld, taken = await owned(store, 23)
    for match in (*matches, idle):
        flusher.keep_tail(match, 1, "a", [])
    load = Load(flusher, [*matches, unheld], 5)
    load.start()
    await until(load.is_over)
    primary = nodes.primary()
    cut_off = nodes.cut_off(primary)
    load.end_soon(4)
    load.start()
    await flusher.append_and_wait(idle, 1, "a", 1, [b"1", b"2"])
    assert await store.journal.claim_match(taken, "b", 1) == 2
    flusher.keep_tail(taken, 2, "b", [])
    assert await flusher.append_and_wait(taken, 2, "b", 1, [b"1"]) in GOOD
    await until(load.is_over)
    primary.kill()
    for node in cut_off:
        node.signal(signal.SIGCONT)
    await until(gaps.are_over)
    await until(lambda: flusher.mends >= len(matches) + 1)

    load.answers.pop(unheld)
    load.end_soon(3)
    load.start()
    await until(load.is_over)
    await load.check(store)
    assert await store.journal.read_entries(idle) == written(2)
    assert await flusher.append_and_wait(unheld, 1, "a", 10, [b"10"]) is AppendResult.FENCED
    assert await store.journal.last_seq(unheld) == 5

    assert await flusher.append_and_wait(taken, 2, "b", 2, [b"2"]) is AppendResult.LOST
    assert await store.journal.reclaim_match(taken, "b", 2) == 3
    flusher.keep_tail(taken, 3, "b", flusher.tail_entries(taken))
    assert await flusher.append_and_wait(taken, 3, "b", 2, [b"2"]) is AppendResult.OK
    assert await store.journal.read_entries(taken) == written(2)


async def test_an_entry_that_only_the_primary_has_does_not_count(
    store: Store, careful: Flusher, gaps: Gaps, nodes: SentinelNodes
) -> None:
    load = Load(careful, await owned(store, 10), 5)
    load.start()
    await until(load.is_over)
    replicas = nodes.replicas_of(nodes.primary())
    for node in replicas:
        node.signal(signal.SIGSTOP)  # connected, and silent
    load.end_soon(1)
    load.start()
    await until(lambda: gaps.said == ["down"])
    await asyncio.sleep(1)  # it is sent again, on a connection that has written nothing before
    assert load.count == 50
    replicas[0].signal(signal.SIGCONT)  # one of two is as many as are waited for
    await until(load.is_over)
    replicas[1].signal(signal.SIGCONT)
    await load.check(store)
    assert gaps.are_over()
