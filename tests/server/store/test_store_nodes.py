"""The store on real Redis nodes that replace one another: a cluster of three shards, and a primary with replicas and sentinels.

They are killed, stopped, cut off and resharded.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
from harness.proxy import proxy_to
from harness.redis_nodes import (
    SERVICE,
    ClusterNodes,
    Node,
    Nodes,
    SentinelNodes,
    binaries,
    cluster_in,
    sentinels_in,
)
from private_redis.appends import GOOD, PATIENCE_S, Gaps, Load, owned, until, written
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
from seatwise_server.store.errors import StoreRefused, StoreUnavailable
from seatwise_server.store.redis.address import THE_PRIMARY, RedisMode

__all__ = ["careful", "flusher", "gaps", "store"]
"""Fixtures of this module."""


CLUSTERS = [("cluster", binary) for binary in binaries()]
SENTINELS = [("sentinels", binary) for binary in binaries()]


def kind_of(kind: tuple[str, Path]) -> str:
    """For the names of tests."""
    return f"{kind[0]}-{kind[1].name}"


on_a_cluster = pytest.mark.parametrize("formed", CLUSTERS, ids=kind_of, indirect=True)
with_sentinels = pytest.mark.parametrize("formed", SENTINELS, ids=kind_of, indirect=True)


@pytest.fixture(scope="module", params=[*CLUSTERS, *SENTINELS], ids=kind_of)
def formed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """One set of nodes of each kind for the module."""
    kind, binary = request.param
    form = cluster_in if kind == "cluster" else sentinels_in
    with form(tmp_path_factory.mktemp(kind), binary) as nodes:
        yield nodes


@pytest.fixture
def nodes(formed: Nodes) -> Nodes:
    """The nodes, whole and empty."""
    formed.revive()
    formed.empty()
    return formed


@pytest.fixture
def cluster(nodes: Nodes) -> ClusterNodes:
    """The same, for tests on a cluster alone."""
    assert isinstance(nodes, ClusterNodes)
    return nodes


@pytest.fixture
def watched(nodes: Nodes) -> SentinelNodes:
    """The same, for tests with sentinels alone."""
    assert isinstance(nodes, SentinelNodes)
    return nodes


@pytest_asyncio.fixture
async def client(nodes: Any) -> AsyncIterator[RedisClient]:
    client = new_client(nodes.url, bridge_s=PATIENCE_S)
    yield client
    await client.close_connections()


def primary_of(nodes: Nodes, match: str) -> Node:
    """The node that holds this match."""
    return nodes.primary_of(keys.match_fence(match)) if isinstance(nodes, ClusterNodes) else nodes.primary()  # type: ignore[attr-defined]


def has_moved(nodes: Nodes, match: str, victim: Node) -> bool:
    """Whether another node holds this match. In the midst of a failover none does."""
    with suppress(StopIteration):
        return primary_of(nodes, match) is not victim
    return False


def at(nodes: Nodes, node: Node, matches: list[str]) -> list[str]:
    """Those of the matches that the node holds."""
    if not isinstance(nodes, ClusterNodes):
        return matches
    held = set(nodes.keys_at(node, [keys.match_fence(match) for match in matches]))
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
                globals()[_test] = on_a_cluster(_it)


@on_a_cluster
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


@on_a_cluster
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


@on_a_cluster
async def test_one_bad_node_spoils_them_all(client: RedisClient, cluster: ClusterNodes) -> None:
    [replica] = cluster.replicas_of(cluster.primary_of("x"))
    replica.ask("CONFIG SET", "appendfsync", "everysec")
    try:
        with pytest.raises(StoreRefused, match=f"at {replica.address} .* appendfsync always"):
            await check_server(client, allow_loss=False)
        assert not (await check_server(client, allow_loss=True)).is_lossless
    finally:
        replica.ask("CONFIG SET", "appendfsync", "always")


@on_a_cluster
async def test_a_node_is_not_taken_for_the_whole(cluster: ClusterNodes) -> None:
    client = new_client(f"redis://{cluster.nodes[0].address}")
    with pytest.raises(StoreRefused, match=r"redis\+cluster://"):
        await check_server(client, allow_loss=True)
    await client.close_connections()


@on_a_cluster
async def test_a_storm_waits_its_turn(client: RedisClient, cluster: ClusterNodes) -> None:
    await asyncio.gather(*(client.call("INCR", f"storm-{number}") for number in range(2_000)))
    for node in cluster.primaries():
        assert int(node.info()["connected_clients"]) < 100


@on_a_cluster
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


@on_a_cluster
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
            await store.seats.release_all("matches/1", [bot])
        if {text.split(" ")[0] for text in heard} == set(bots):
            break
    assert {text.split(" ")[0] for text in heard} == set(bots)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


@on_a_cluster
async def test_the_clock_is_one_nodes(client: RedisClient) -> None:
    assert await now_ms(client) - await now_ms(client) + 5_000 >= 0


# Slots that move


@on_a_cluster
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


@on_a_cluster
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


@on_a_cluster
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


# What all of them promise


@pytest.mark.slow
async def test_with_a_replica_waited_for_a_failover_loses_nothing(
    client: RedisClient, store: Store, careful: Flusher, gaps: Gaps, nodes: Nodes
) -> None:
    matches = await owned(store, 60)
    victim = primary_of(nodes, matches[0])
    hit = at(nodes, victim, matches)
    load = Load(careful, matches, 10_000, PAUSE_S)
    load.start()
    hearing = asyncio.ensure_future(anext(client.listen_to("news")))
    await until(lambda: load.count > 600)
    victim.kill()
    await until(lambda: has_moved(nodes, matches[0], victim))
    assert await client.call("INCR", "bridged") == 1  # a call takes as long as the failover, and no longer
    before = {match: len(load.answers[match]) for match in matches}
    await load.check_answered(store)  # nobody holds anything here: what was answered is there by itself
    if isinstance(nodes, SentinelNodes):
        with pytest.raises(StoreUnavailable):  # who listens has to listen again
            await hearing
    else:
        hearing.cancel()
        await asyncio.sleep(0.5)
        assert not careful.healthy  # the new primary has no replica
        for match in matches:
            assert (len(load.answers[match]) > before[match]) is (match not in hit), match
        nodes.restart()
    await until(lambda: careful.healthy)
    load.end_soon(10)
    await until(load.is_over)
    await load.check(store)
    assert gaps.are_over()
    assert careful.mends == 0


async def test_entries_that_a_failover_forgot_are_written_again(
    store: Store, flusher: Flusher, gaps: Gaps, nodes: Nodes
) -> None:
    matches = await owned(store, 40)
    victim = primary_of(nodes, matches[0])
    *hit, idle, unheld, taken = at(nodes, victim, matches)
    for match in set(matches) - {unheld, taken}:
        flusher.keep_tail(match, 1, "a", [])
    load = Load(flusher, [match for match in matches if match not in (idle, taken)], 5)
    load.start()
    await until(load.is_over)
    cut_off = nodes.cut_off(victim)
    load.end_soon(4)
    load.start()
    await flusher.append_and_wait(idle, 1, "a", 1, [b"1", b"2"])  # and then it is idle
    assert (await store.journal.claim_match(taken, "b", 1))[0] == 2
    flusher.keep_tail(taken, 2, "b", [])
    assert await flusher.append_and_wait(taken, 2, "b", 1, [b"1"]) in GOOD
    await until(load.is_over)
    victim.kill()
    for node in cut_off:
        node.signal(signal.SIGCONT)
    await until(gaps.are_over)
    await until(lambda: flusher.mends >= len(hit) + 1)

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
    store: Store, careful: Flusher, gaps: Gaps, nodes: Nodes
) -> None:
    [match] = await owned(store, 1)
    assert await careful.append_and_wait(match, 1, "a", 1, [b"1"]) in GOOD
    await careful.wait_for_replicas(match)
    replicas = nodes.replicas_of(primary_of(nodes, match))
    for node in replicas:
        node.signal(signal.SIGSTOP)  # connected, and silent
    append = asyncio.create_task(careful.append_and_wait(match, 1, "a", 2, [b"2"]))
    await until(lambda: gaps.said == ["down"])
    await asyncio.sleep(1)  # it is sent again, on a connection that has written nothing before
    assert not append.done()
    assert await store.journal.last_seq(match) == 2  # there it is, and nobody is told
    replicas[0].signal(signal.SIGCONT)  # one is as many as are waited for
    assert await append is AppendResult.ALREADY
    for node in replicas[1:]:
        node.signal(signal.SIGCONT)
    assert gaps.are_over()


# Sentinels


@with_sentinels
async def test_primary_and_replicas_are_asked_what_they_promise(
    client: RedisClient, watched: SentinelNodes
) -> None:
    facts = await check_server(client, allow_loss=False)
    assert facts.mode is RedisMode.SENTINEL
    assert [node.role for node in facts.nodes] == ["master", "slave", "slave"]
    assert {str(node.address) for node in facts.replicas} == {
        node.address for node in watched.replicas_of(watched.primary())
    }
    assert facts.is_lossless
    assert facts.durability == "loss-allowed"  # by a failover, and nobody waits for the replicas
    assert (await check_server(client, allow_loss=False, wait_replicas=2)).durability == "fsync"
    with pytest.raises(StoreRefused, match=r"wait for 3 replicas .* has 2"):
        await check_server(client, allow_loss=False, wait_replicas=3)


@with_sentinels
async def test_other_urls_for_the_same_nodes_are_refused(watched: SentinelNodes) -> None:
    [replica, _] = watched.replicas_of(watched.primary())
    for url, hint in (
        (f"redis://{watched.sentinels[0].address}", r"redis\+sentinel://HOST,HOST/SERVICE"),
        (f"redis://{replica.address}", "is a replica"),
        (f"redis+cluster://{watched.primary().address}", "is not a cluster"),
    ):
        client = new_client(url)
        with pytest.raises(StoreRefused, match=hint):
            await check_server(client, allow_loss=True)
        await client.close_connections()
    client = new_client(watched.url + "x", bridge_s=0.1)
    with pytest.raises(StoreUnavailable):
        await client.call("PING")
    await client.close_connections()


@with_sentinels
async def test_a_dead_sentinel_is_passed_over(watched: SentinelNodes) -> None:
    client = new_client(watched.url.replace("//", "//127.0.0.1:1,"))
    assert await client.call("PING")
    await client.close_connections()


@with_sentinels
async def test_no_sentinel_is_forgotten_when_many_ask_at_once(watched: SentinelNodes) -> None:
    """One that was silent for a while is asked again, when the others are silent."""
    first, second, _ = watched.sentinels
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


@with_sentinels
@pytest.mark.slow
async def test_a_primary_that_stands_still_is_replaced_and_comes_back_as_a_replica(
    store: Store, careful: Flusher, gaps: Gaps, watched: SentinelNodes
) -> None:
    load = Load(careful, await owned(store, 20), 10_000, PAUSE_S)
    load.start()
    await until(lambda: load.count > 200)
    frozen = watched.primary()
    frozen.signal(signal.SIGSTOP)
    try:
        await until(lambda: watched.primary() is not frozen)
        before = load.count
        await until(lambda: load.count > before + 200)
    finally:
        frozen.signal(signal.SIGCONT)
    await asyncio.sleep(0.3)  # it thinks that it is the primary still
    load.end_soon(10)
    await until(load.is_over)
    await load.check(store)
    assert gaps.are_over()
