"""The store on a real Redis Cluster: three primaries and their replicas, killed, cut off and resharded."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
from harness.redis_nodes import ClusterNodes, Node, binaries, cluster_in
from private_redis.appends import GOOD, PATIENCE_S, Gaps, Load, owned, until
from private_redis.replicated import PAUSE_S, careful, flusher, gaps, store
from redis.asyncio.cluster import RedisCluster
from redis.crc import key_slot

from seatwise_server.store import (
    AppendResult,
    Flusher,
    RedisClient,
    Store,
    check_server,
    keys,
    new_client,
    now_ms,
)
from seatwise_server.store.errors import StoreRefused
from seatwise_server.store.redis.address import RedisMode

__all__ = ["careful", "flusher", "gaps", "store"]
"""Fixtures of this module."""


@pytest.fixture(scope="module", params=binaries(), ids=attrgetter("name"))
def formed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterNodes]:
    """One cluster for the module; whoever kills one of its nodes asks for `cluster`."""
    with cluster_in(tmp_path_factory.mktemp("cluster"), request.param) as cluster:
        yield cluster


@pytest.fixture
def cluster(formed: ClusterNodes) -> ClusterNodes:
    """The cluster, whole and empty."""
    formed.revive()
    formed.empty()
    return formed


@pytest_asyncio.fixture
async def client(cluster: ClusterNodes) -> AsyncIterator[RedisClient]:
    client = new_client(cluster.url, bridge_s=PATIENCE_S)
    yield client
    await client.close_connections()


def at(cluster: ClusterNodes, node: Node, matches: list[str]) -> list[str]:
    """Those of the matches that the node holds."""
    held = set(cluster.keys_at(node, [keys.match_fence(match) for match in matches]))
    return [match for match in matches if keys.match_fence(match) in held]


# What every test of the store asks of one server, asked of a cluster


def _module(name: str) -> ModuleType:
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"on_a_cluster_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


for _name in ("bots", "jobs", "journal", "matches", "processes", "queues", "results", "seats", "sets"):
    for _test, _it in vars(_module(f"test_store_{_name}")).items():
        if _test.startswith("test_") and inspect.iscoroutinefunction(_it):
            _wanted = set(inspect.signature(_it).parameters)
            if "store" in _wanted and "redis_client" not in _wanted:
                globals()[_test] = _it


def test_a_cluster_is_empty_only_when_its_replicas_have_read_that(
    cluster: ClusterNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Node.read_offset
    asked: list[Node] = []

    def behind_at_first(node: Node) -> int:
        asked.append(node)
        return read(node) if len(asked) > 2 else 0

    monkeypatch.setattr(Node, "read_offset", behind_at_first)
    cluster.empty()
    assert len(asked) >= 2 + len(cluster.nodes) // 2


# What a cluster promises


async def test_every_node_is_asked_what_it_promises(client: RedisClient, cluster: ClusterNodes) -> None:
    facts = await check_server(client, allow_loss=False)
    assert facts.mode is RedisMode.CLUSTER
    assert {str(node.address) for node in facts.nodes} == {node.address for node in cluster.nodes}
    assert [node.role for node in facts.nodes] == ["master"] * 3 + ["slave"] * 3
    assert facts.is_lossless
    assert facts.durability == "loss-allowed"  # by a failover, and nobody waits for the replicas
    assert (await check_server(client, allow_loss=False, wait_replicas=1)).durability == "fsync"
    with pytest.raises(StoreRefused, match=r"--wait-replicas.*has 1"):
        await check_server(client, allow_loss=False, wait_replicas=2)


async def test_one_bad_node_spoils_them_all(client: RedisClient, cluster: ClusterNodes) -> None:
    [replica] = cluster.replicas_of(cluster.primary_of("x"))
    replica.ask("CONFIG SET", "appendfsync", "everysec")
    try:
        with pytest.raises(StoreRefused, match=f"at {replica.address} .* appendfsync always"):
            await check_server(client, allow_loss=False)
        assert not (await check_server(client, allow_loss=True)).is_lossless
    finally:
        replica.ask("CONFIG SET", "appendfsync", "always")


async def test_a_node_is_not_taken_for_the_whole(cluster: ClusterNodes) -> None:
    client = new_client(f"redis://{cluster.nodes[0].address}")
    with pytest.raises(StoreRefused, match=r"redis\+cluster://"):
        await check_server(client, allow_loss=True)
    await client.close_connections()


async def test_a_storm_waits_its_turn(client: RedisClient, cluster: ClusterNodes) -> None:
    await asyncio.gather(*(client.call("INCR", f"storm-{number}") for number in range(2_000)))
    for node in cluster.primaries():
        assert int(node.info()["connected_clients"]) < 100


async def test_a_connection_that_redis_py_takes_away_is_an_outage_like_others(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = RedisCluster.execute_command
    asked: list[str] = []

    async def ask_once_in_vain(cluster: RedisCluster, *command: Any, **options: Any) -> Any:
        asked.append(command[0])
        if len(asked) == 1:  # as met in failovers: it writes to a connection that another call has closed
            raise AttributeError("'NoneType' object has no attribute 'writelines'")
        return await ask(cluster, *command, **options)

    monkeypatch.setattr(RedisCluster, "execute_command", ask_once_in_vain)
    assert await client.call("INCR", "counted") == 1
    assert asked == ["INCR", "INCR"]


async def test_notices_are_heard_whichever_node_they_are_told(client: RedisClient, store: Store) -> None:
    heard: list[str] = []

    async def listen() -> None:
        async with aclosing(client.listen_to(keys.OFFERS_CHANNEL)) as notices:
            async for _, text in notices:
                heard.append(text)

    listening = asyncio.create_task(listen())
    bots = [f"bots/b{number}/versions/1" for number in range(9)]
    for _ in range(100):
        for bot in bots:
            await store.seats.release_seat(bot, "matches/1", 0)
        if {text.split(" ")[0] for text in heard} == set(bots):
            break
    assert {text.split(" ")[0] for text in heard} == set(bots)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_the_clock_is_one_nodes(client: RedisClient) -> None:
    assert await now_ms(client) - await now_ms(client) + 5_000 >= 0


# Slots that move


async def test_slots_move_under_traffic(
    client: RedisClient, store: Store, flusher: Flusher, gaps: Gaps, cluster: ClusterNodes
) -> None:
    matches = await owned(store, 30)
    load = Load(flusher, matches, 10_000, PAUSE_S)
    load.start()
    await asyncio.gather(
        *(client.call("INCR", f"warm-{number}") for number in range(200))
    )  # many connections
    for match in matches[:4]:
        await move_slot(cluster, store, match)
    load.end_soon(5)
    await until(load.is_over)
    await load.check(store)
    assert gaps.said == []
    for match in matches[:4]:  # and back, for the tests that follow
        await move_slot(cluster, store, match)


async def move_slot(cluster: ClusterNodes, store: Store, match: str) -> None:
    """Its keys go one by one, and are read and written on the way; with half of them here, TRYAGAIN is the answer."""
    fence, journal = keys.match_fence(match), keys.match_journal(match)
    slot = key_slot(fence.encode())
    source = cluster.primary_of(fence)
    target = next(node for node in cluster.primaries() if node is not source)
    target.ask("CLUSTER SETSLOT", slot, "IMPORTING", source.ask("CLUSTER MYID"))
    source.ask("CLUSTER SETSLOT", slot, "MIGRATING", target.ask("CLUSTER MYID"))
    for key in (fence, journal):
        source.ask("MIGRATE", "127.0.0.1", target.port, key, 0, 1000)
        await asyncio.sleep(0.03)
    before = await asyncio.gather(*(store.journal.read_entries(match) for _ in range(20)))
    assert all(before)
    await asyncio.sleep(0.03)
    for node in (target, source):
        node.ask("CLUSTER SETSLOT", slot, "NODE", target.ask("CLUSTER MYID"))
    await asyncio.sleep(0.05)


# Primaries that die


async def test_a_primary_is_killed_and_play_goes_on(
    store: Store, flusher: Flusher, gaps: Gaps, cluster: ClusterNodes
) -> None:
    matches = await owned(store, 60)
    for match in matches:
        flusher.keep_tail(match, 1, "a", [])
    victim = cluster.primary_of(keys.match_fence(matches[0]))
    others = sorted(set(matches) - set(at(cluster, victim, matches)))
    load = Load(flusher, matches, 10_000, PAUSE_S)
    load.start()
    await until(lambda: load.count > 600)
    victim.kill()
    await until(lambda: gaps.said == ["down"])
    before = [len(load.answers[match]) for match in others]
    await until(gaps.are_over)
    assert all(len(load.answers[match]) > count for match, count in zip(others, before, strict=True))
    load.end_soon(10)
    await until(load.is_over)
    await load.check(store)


async def test_entries_that_a_failover_forgot_are_written_again(
    store: Store, flusher: Flusher, gaps: Gaps, cluster: ClusterNodes
) -> None:
    matches = await owned(store, 30)
    victim = cluster.primary_of(keys.match_fence(matches[0]))
    hit = at(cluster, victim, matches)
    *hit, unheld = hit
    for match in set(matches) - {unheld}:
        flusher.keep_tail(match, 1, "a", [])
    load = Load(flusher, [match for match in matches if match != hit[-1]], 5)
    load.start()
    await flusher.append_and_wait(hit[-1], 1, "a", 1, [b"1", b"2"])
    await until(load.is_over)
    cut_off = cluster.cut_off(victim)
    load.end_soon(4)
    load.start()
    await flusher.append_and_wait(hit[-1], 1, "a", 3, [b"3", b"4"])  # and then it is idle
    await until(load.is_over)
    victim.kill()
    for node in cut_off:
        node.signal(signal.SIGCONT)
    await until(gaps.are_over)
    await until(lambda: flusher.mends >= len(hit))
    load.answers.pop(unheld)
    load.end_soon(3)
    load.start()
    await until(load.is_over)
    await load.check(store)
    assert await store.journal.read_entries(hit[-1]) == [b"1", b"2", b"3", b"4"]
    assert await flusher.append_and_wait(unheld, 1, "a", 10, [b"10"]) is AppendResult.FENCED
    assert await store.journal.last_seq(unheld) == 5


async def test_with_a_replica_waited_for_a_failover_loses_nothing(
    store: Store, careful: Flusher, gaps: Gaps, cluster: ClusterNodes
) -> None:
    matches = await owned(store, 60)
    victim = cluster.primary_of(keys.match_fence(matches[0]))
    hit = at(cluster, victim, matches)
    load = Load(careful, matches, 10_000, PAUSE_S)
    load.start()
    await until(lambda: load.count > 600)
    victim.kill()
    await until(lambda: cluster.primary_of(keys.match_fence(matches[0])) is not victim)
    before = {match: len(load.answers[match]) for match in matches}
    await load.check_answered(store)  # nobody holds anything here: what was answered is there by itself
    await asyncio.sleep(0.5)
    assert not careful.healthy  # the new primary has no replica
    for match in matches:
        went_on = len(load.answers[match]) > before[match]
        assert went_on is (match not in hit), match
    cluster.restart()
    await until(lambda: careful.healthy)
    load.end_soon(10)
    await until(load.is_over)
    await load.check(store)
    assert gaps.are_over()
    assert careful.mends == 0


async def test_an_entry_that_only_the_primary_has_does_not_count(
    store: Store, careful: Flusher, gaps: Gaps, cluster: ClusterNodes
) -> None:
    [match] = await owned(store, 1)
    assert await careful.append_and_wait(match, 1, "a", 1, [b"1"]) in GOOD
    await careful.wait_for_replicas(match)
    cut_off = cluster.cut_off(cluster.primary_of(keys.match_fence(match)))
    append = asyncio.create_task(careful.append_and_wait(match, 1, "a", 2, [b"2"]))
    await until(lambda: gaps.said == ["down"])
    await asyncio.sleep(0.4)
    assert not append.done()
    assert await store.journal.last_seq(match) == 2  # there it is, and nobody is told
    for node in cut_off:
        node.signal(signal.SIGCONT)
    assert await append is AppendResult.ALREADY
    assert gaps.are_over()


async def test_the_clients_calls_bridge_a_failover(store: Store, cluster: ClusterNodes) -> None:
    bots = [f"b{number}" for number in range(40)]
    victim = cluster.primary_of(keys.bot_registration("bots/b0/versions/1"))
    blocked = [
        asyncio.create_task(store.journal.wait_for_entries(f"matches/{number}", 0, 2_000))
        for number in range(20)
    ]
    registering = []
    for name in bots:
        registering.append(asyncio.create_task(store.bots.register_bot(name, "1", "me", f"request {name}")))
        await asyncio.sleep(0.005)
        if name == bots[10]:
            victim.kill()
    issued = await asyncio.gather(*registering)
    assert [it.bot for it in issued] == [f"bots/{name}/versions/1" for name in bots]
    assert await asyncio.gather(*blocked) == [[]] * 20
