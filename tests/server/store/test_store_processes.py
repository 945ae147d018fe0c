"""Heartbeats, orders, and who is called dead."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio import Redis

from seatwise_server.store import DeathWatch, Heartbeat, Store


def beats(**counts: int) -> dict[str, Heartbeat]:
    return {name: Heartbeat(count, "", has_left=False) for name, count in counts.items()}


def looked(watch: DeathWatch, start: float, seconds: int, **counts: int) -> float:
    """Looks once a second, always seeing the same, and answers the time of the last look."""
    for second in range(seconds + 1):
        watch.observe_heartbeats(start + second, start + second + 0.01, beats(**counts))
    return start + seconds


async def test_heartbeats_rise_and_are_listed(store: Store) -> None:
    assert [await store.processes.write_heartbeat("a", "host:1") for _ in range(3)] == [1, 2, 3]
    await store.processes.write_heartbeat("b", "host:2")
    assert await store.processes.read_heartbeats() == {
        "a": Heartbeat(3, "host:1", has_left=False),
        "b": Heartbeat(1, "host:2", has_left=False),
    }


async def test_a_handover_is_heard(store: Store) -> None:
    await store.processes.write_heartbeat("a", "host:1")
    assert await store.processes.deregister_process("a")
    assert not await store.processes.deregister_process("unknown")
    assert (await store.processes.read_heartbeats())["a"].has_left
    await store.processes.write_heartbeat("a", "host:1")
    assert not (await store.processes.read_heartbeats())["a"].has_left


async def test_everything_about_a_process_expires(store: Store, redis_client: Redis) -> None:
    await store.processes.write_heartbeat("a", "host:1")
    await store.processes.send_order("a", b"abort matches/1")
    ttls = {await redis_client.ttl(key) for key in await redis_client.keys() if not key.endswith(b"index")}
    assert min(ttls) > 200


async def test_orders_come_in_order_until_the_next_are_asked_for(store: Store) -> None:
    for order in (b"first", b"second"):
        await store.processes.send_order("a", order)
    found = await store.processes.read_orders("a")
    assert [it.order for it in found] == [b"first", b"second"]
    assert await store.processes.read_orders("a") == found  # the reply was lost
    assert await store.processes.read_orders("a", found[0].order_id) == found[1:]
    assert await store.processes.read_orders("a", found[1].order_id) == []
    assert await store.processes.read_orders("b") == []


async def test_a_process_wakes_up_at_an_order(store: Store) -> None:
    asking = asyncio.create_task(store.processes.read_orders("a", block_ms=5_000))
    await asyncio.sleep(0.02)
    await store.processes.send_order("a", b"void")
    assert [it.order for it in await asking] == [b"void"]


def test_a_process_that_beats_lives() -> None:
    watch = DeathWatch(lease_s=5)
    for second in range(20):
        watch.observe_heartbeats(second, second, beats(a=second // 4))
        assert watch.dead_processes() == frozenset()


def test_a_process_that_stands_still_for_the_whole_lease_is_dead() -> None:
    watch = DeathWatch(lease_s=5)
    end = looked(watch, 0, 4, a=1, b=1)
    assert watch.dead_processes() == frozenset()
    watch.observe_heartbeats(end + 1.1, end + 1.1, beats(a=1, b=2))
    assert watch.dead_processes() == {"a"}
    watch.observe_heartbeats(end + 2, end + 2, beats(a=2, b=2))
    assert watch.dead_processes() == frozenset()


def test_no_process_is_dead_at_first_sight() -> None:
    watch = DeathWatch(lease_s=5)
    assert watch.dead_processes() == frozenset()
    watch.observe_heartbeats(1_000, 1_000, beats(a=1))
    assert watch.dead_processes() == frozenset()


@pytest.mark.parametrize(
    ("asked", "answered"),
    [(5, 7.5), (9, 9.01)],
    ids=["Redis answered slowly", "we did not look for a while"],
)
def test_after_a_time_that_proves_nothing_everybody_has_a_whole_lease(asked: float, answered: float) -> None:
    watch = DeathWatch(lease_s=5)
    looked(watch, 0, 4, a=1)
    watch.observe_heartbeats(asked, answered, beats(a=1))
    assert watch.dead_processes() == frozenset()
    end = looked(watch, answered + 0.9, 4, a=1)
    assert watch.dead_processes() == frozenset()
    looked(watch, end + 1, 0, a=1)
    assert watch.dead_processes() == {"a"}


def test_an_owner_without_a_heartbeat_is_watched_too() -> None:
    watch = DeathWatch(lease_s=2)
    for second in range(3):
        assert watch.dead_processes() == frozenset()
        watch.observe_heartbeats(second, second, beats(), mentioned={"ghost"})
    assert watch.dead_processes() == {"ghost"}
    watch.observe_heartbeats(3, 3, beats(ghost=1), mentioned={"ghost"})
    assert watch.dead_processes() == frozenset()


def test_a_process_that_has_left_need_not_be_waited_for() -> None:
    watch = DeathWatch(lease_s=5)
    watch.observe_heartbeats(
        0, 0, {"a": Heartbeat(3, "", has_left=True), "b": Heartbeat(3, "", has_left=False)}
    )
    assert watch.dead_processes() == {"a"}
